#include "daemon/delivery.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/sender.h"

enum { POLL_MS = 100, BACKOFF_NS = 1000000, LOGGED_A_SECOND = 20 };

struct delivery {
  struct sender *sender;
  struct counters *counters;
  _Atomic(struct query_reader *) queries;
  _Atomic uint64_t n_catalogue_letters; /* on their way */
  _Atomic int64_t log_second;           /* of the newest dead letter */
  _Atomic uint64_t n_logged;            /* dead letters of that second */
  _Atomic bool is_stopping;
  _Atomic int64_t give_up_ns; /* 0: never */
  pthread_t thread;
  bool has_thread;
};

/* A message's opaque: 0 is a dead letter of the catalogue, n + 1 the reply with ticket n. */
static void *opaque_of_ticket(uint32_t ticket)
{
  return (void *)((uintptr_t)ticket + 1);
}

static void end_message(struct delivery *d, void *opaque)
{
  struct query_reader *queries = atomic_load(&d->queries);

  if (!opaque)
    atomic_fetch_sub(&d->n_catalogue_letters, 1);
  else if (queries)
    query_reader_done(queries, (uint32_t)((uintptr_t)opaque - 1));
}

static void on_report(void *context, const struct sender_report *report)
{
  struct delivery *d = context;

  if (!report->is_delivered) {
    counters_add(&d->counters->undeliverable, 1);
    log_error("undeliverable", "kind=%s reason=%s", report->opaque ? "reply" : "dead_letter",
              log_quote(span_of_str(report->reason)));
    if (report->is_retriable && report->opaque)
      return; /* its offset stays uncommitted: it is answered again after a restart */
  }
  end_message(d, report->opaque);
}

static void *run(void *context)
{
  struct delivery *d = context;

  while (!atomic_load(&d->is_stopping))
    sender_poll(d->sender, POLL_MS);
  return NULL;
}

err_t delivery_open(const struct kafka_layers *layers, struct counters *counters, struct delivery **out)
{
  AUTO(delivery_close) struct delivery *d = NULL;

  TRY(mem_array(1, sizeof *d, &d));
  d->counters = counters;
  TRY(sender_open(layers, on_report, d, &d->sender));
  if (pthread_create(&d->thread, NULL, run, d) != 0)
    FAIL(ERR_SYSTEM, "the delivery thread cannot be started");
  d->has_thread = true;
  *out = d;
  d = NULL;
  return ERR_OK;
}

void delivery_give_up_at(struct delivery *d, int64_t ns)
{
  atomic_store(&d->give_up_ns, ns);
}

/* Sleep a little, unless it is time to give up. */
static bool may_wait(struct delivery *d)
{
  int64_t give_up_ns = atomic_load(&d->give_up_ns);

  if (give_up_ns && clock_now_ns() >= give_up_ns)
    return false;
  clock_sleep_ns(BACKOFF_NS);
  return true;
}

void delivery_close(struct delivery **d)
{
  if (!*d)
    return;
  while ((*d)->has_thread && sender_n_waiting((*d)->sender) > 0 && may_wait(*d))
    ;
  atomic_store(&(*d)->is_stopping, true);
  if ((*d)->has_thread)
    pthread_join((*d)->thread, NULL);
  sender_close(&(*d)->sender);
  mem_free(d);
}

void delivery_attach(struct delivery *d, struct query_reader *queries)
{
  atomic_store(&d->queries, queries);
}

/* Send, waiting while the queue is full. When the daemon stops meanwhile, the message is dropped and its ticket stays
 * open: the query is answered after a restart. Returns ERR_KAFKA for what can never be sent. */
static err_t send_message(struct delivery *d, const struct sender_message *message)
{
  err_code_t err;

  do {
    err = sender_send(d->sender, message);
  } while (err_class(err) == ERR_CLASS_RETRY && may_wait(d));
  if (err == ERR_OK)
    return ERR_OK;
  counters_add(&d->counters->undeliverable, 1);
  log_error("undeliverable", "topic=%s reason=%s", message->topic, log_failure());
  return err_class(err) == ERR_CLASS_RETRY ? ERR_OK : err;
}

err_t delivery_reply(struct delivery *d, const struct delivery_reply *reply)
{
  struct sender_header header = { "content-type", span_of_str(wire_content_type(reply->format)) };
  struct sender_message message = {
    .topic = reply->topic,
    .has_key = reply->has_key,
    .key = reply->key,
    .has_value = true,
    .value = reply->value,
    .headers = &header,
    .n_headers = 1,
    .opaque = opaque_of_ticket(reply->ticket),
  };

  return send_message(d, &message);
}

void delivery_abandon(struct delivery *d, uint32_t ticket)
{
  end_message(d, opaque_of_ticket(ticket));
}

/* A flood of bad messages must not become a flood of log lines: so many a second are told, the rest is counted. */
static bool may_log(struct delivery *d)
{
  int64_t second = clock_now_ns() / CLOCK_NS_PER_S;

  if (atomic_exchange(&d->log_second, second) != second) {
    uint64_t n_untold = atomic_exchange(&d->n_logged, 0);
    if (n_untold > LOGGED_A_SECOND)
      log_warn("dead_letters", "more=%" PRIu64 " note=\"not told one by one\"", n_untold - LOGGED_A_SECOND);
  }
  return atomic_fetch_add(&d->n_logged, 1) < LOGGED_A_SECOND;
}

void delivery_dead_letter(struct delivery *d, const struct delivery_dead_letter *letter)
{
  char partition[16], offset[24], reason[1024]; /* a copy: err_message() changes while the queue is full */
  snprintf(reason, sizeof reason, "%s", letter->reason);
  snprintf(partition, sizeof partition, "%" PRId32, letter->partition);
  snprintf(offset, sizeof offset, "%" PRId64, letter->offset);
  struct sender_header headers[] = {
    { "sluice.topic", span_of_str(letter->source_topic) },
    { "sluice.partition", span_of_str(partition) },
    { "sluice.offset", span_of_str(offset) },
    { "sluice.reason", span_of_str(reason) },
  };
  struct sender_message message = {
    .topic = letter->topic,
    .has_key = letter->has_key,
    .key = letter->key,
    .has_value = letter->has_value,
    .value = letter->value,
    .headers = headers,
    .n_headers = sizeof headers / sizeof headers[0],
    .opaque = letter->is_query ? opaque_of_ticket(letter->ticket) : NULL,
  };

  counters_add(&d->counters->dead_letters, 1);
  if (may_log(d))
    log_warn("dead_letter", "topic=%s partition=%s offset=%s key=%s reason=%s", letter->source_topic, partition, offset,
             log_quote(letter->key), log_quote(span_of_str(reason)));
  if (!letter->is_query)
    atomic_fetch_add(&d->n_catalogue_letters, 1);
  if (send_message(d, &message) != ERR_OK)
    end_message(d, message.opaque);
}

bool delivery_wait_for_dead_letters(struct delivery *d)
{
  while (atomic_load(&d->n_catalogue_letters) > 0) {
    if (!may_wait(d))
      return false;
  }
  return true;
}
