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
  _Atomic(struct alarm *) alarm;
  _Atomic bool has_alarmed;
  _Atomic uint64_t n_catalogue_letters; /* on their way */
  _Atomic int64_t log_second;           /* of the newest dead letter */
  _Atomic uint64_t n_logged;            /* dead letters of that second */
  _Atomic bool is_stopping;
  _Atomic int64_t give_up_ns; /* 0: never */
  pthread_t thread;
  bool has_thread;
};

/* What the report of a message needs. Dead letters of the catalogue need nothing. */
struct sent {
  bool is_reply; /* else a dead letter of the query topic */
  uint32_t ticket;
  bool has_error; /* an error may still be sent in the reply's place */
  const char *error_topic;
  enum wire_format format;
  bool has_key;
  size_t n_key;
  size_t n_error;
  uint8_t bytes[]; /* key, then error */
};

static void end_message(struct delivery *d, const struct sent *sent)
{
  struct query_reader *queries = atomic_load(&d->queries);

  if (!sent)
    atomic_fetch_sub(&d->n_catalogue_letters, 1);
  else if (queries)
    query_reader_done(queries, sent->ticket);
}

static err_t send_now(struct delivery *d, const char *topic, const struct sent *sent, struct span value)
{
  struct sender_header header = { "content-type", span_of_str(wire_content_type(sent->format)) };
  struct sender_message message = {
    .topic = topic,
    .has_key = sent->has_key,
    .key = span_of(sent->bytes, sent->n_key),
    .has_value = true,
    .value = value,
    .headers = &header,
    .n_headers = 1,
    .opaque = (void *)(uintptr_t)sent,
  };

  return sender_send(d->sender, &message);
}

/* A broker does not take a reply: the topic is not there, is not ours to write, or takes no message of this size. The
 * error in its place is small, and goes to the configured topic. Returns whether it is on its way. */
static bool send_error_instead(struct delivery *d, struct sent *sent)
{
  if (!sent->has_error)
    return false;
  sent->has_error = false;
  return send_now(d, sent->error_topic, sent, span_of(sent->bytes + sent->n_key, sent->n_error)) == ERR_OK;
}

/* Neither answer nor error could be delivered: the query stays uncommitted, and after a restart it is asked again. */
static void give_up_reply(struct delivery *d)
{
  struct alarm *alarm = atomic_load(&d->alarm);

  if (alarm && !atomic_exchange(&d->has_alarmed, true))
    alarm_raise(alarm, "delivery", err_set(ERR_KAFKA, __FILE__, __LINE__, "replies cannot be delivered: see above"));
}

static void on_report(void *context, const struct sender_report *report)
{
  struct delivery *d = context;
  struct sent *sent = report->opaque;

  if (report->is_delivered) {
    end_message(d, sent);
    mem_free(&sent);
    return;
  }
  counters_add(&d->counters->undeliverable, 1);
  log_error("undeliverable", "kind=%s reason=%s", sent ? "reply" : "dead_letter",
            log_quote(span_of_str(report->reason)));
  if (!sent || (!sent->is_reply && !report->is_retriable)) {
    end_message(d, sent);
    mem_free(&sent);
  } else if (report->is_retriable) { /* stopping: it stays uncommitted, and is answered after a restart */
    mem_free(&sent);
  } else if (!send_error_instead(d, sent)) {
    give_up_reply(d);
    mem_free(&sent);
  }
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

void delivery_drain(struct delivery *d)
{
  while (d->has_thread && sender_n_waiting(d->sender) > 0 && may_wait(d))
    ;
}

void delivery_close(struct delivery **d)
{
  if (!*d)
    return;
  delivery_drain(*d);
  atomic_store(&(*d)->is_stopping, true);
  if ((*d)->has_thread)
    pthread_join((*d)->thread, NULL);
  sender_close(&(*d)->sender);
  mem_free(d);
}

void delivery_attach(struct delivery *d, struct query_reader *queries, struct alarm *alarm)
{
  atomic_store(&d->alarm, alarm);
  atomic_store(&d->queries, queries);
}

/* A message did not even enter the queue. When the daemon stops, it is dropped and its ticket stays open: the query is
 * answered after a restart. Returns the error of what can never be sent. */
static err_t report_unsent(struct delivery *d, const char *topic, err_code_t err)
{
  counters_add(&d->counters->undeliverable, 1);
  log_error("undeliverable", "topic=%s reason=%s", topic, log_failure());
  return err_class(err) == ERR_CLASS_RETRY ? ERR_OK : err;
}

static err_t make_sent(const struct delivery_reply *reply, struct sent **out)
{
  struct sent *sent;

  TRY(mem_array(1, sizeof *sent + reply->key.n + reply->error_value.n, &sent));
  *sent = (struct sent){
    .is_reply = reply->topic != NULL,
    .ticket = reply->ticket,
    .has_error = reply->error_topic != NULL,
    .error_topic = reply->error_topic,
    .format = reply->format,
    .has_key = reply->has_key,
    .n_key = reply->key.n,
    .n_error = reply->error_value.n,
  };
  if (reply->key.n)
    memcpy(sent->bytes, reply->key.p, reply->key.n);
  if (reply->error_value.n)
    memcpy(sent->bytes + reply->key.n, reply->error_value.p, reply->error_value.n);
  *out = sent;
  return ERR_OK;
}

err_t delivery_reply(struct delivery *d, const struct delivery_reply *reply)
{
  struct sent *sent;
  err_code_t err;

  TRY(make_sent(reply, &sent));
  do {
    err = send_now(d, reply->topic, sent, reply->value);
  } while (err_class(err) == ERR_CLASS_RETRY && may_wait(d));
  if (err == ERR_OK)
    return ERR_OK;
  mem_free(&sent);
  return report_unsent(d, reply->topic, err);
}

void delivery_abandon(struct delivery *d, uint32_t ticket)
{
  end_message(d, &(struct sent){ .ticket = ticket });
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

/* Queue a dead letter. One that no producer can send is logged and counted, and holds nobody back. */
static void send_letter(struct delivery *d, const struct delivery_dead_letter *letter, struct sender_message *message)
{
  struct sent *sent = NULL;
  err_code_t err = ERR_OK;

  if (letter->is_query)
    err = make_sent(&(struct delivery_reply){ .ticket = letter->ticket }, &sent);
  else
    atomic_fetch_add(&d->n_catalogue_letters, 1);
  message->opaque = sent;
  while (err == ERR_OK || err_class(err) == ERR_CLASS_RETRY) {
    err = sender_send(d->sender, message);
    if (err == ERR_OK)
      return;
    if (err_class(err) == ERR_CLASS_RETRY && !may_wait(d))
      break;
  }
  bool is_stopping = report_unsent(d, message->topic, err) == ERR_OK;
  if (!is_stopping && (sent || !letter->is_query))
    end_message(d, sent);
  mem_free(&sent);
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
    { "content-type", letter->content_type },
  };
  struct sender_message message = {
    .topic = letter->topic,
    .has_key = letter->has_key,
    .key = letter->key,
    .has_value = letter->has_value,
    .value = letter->value,
    .headers = headers,
    .n_headers = sizeof headers / sizeof headers[0] - (letter->content_type.n == 0),
  };

  counters_add(&d->counters->dead_letters, 1);
  if (may_log(d))
    log_warn("dead_letter", "topic=%s partition=%s offset=%s key=%s reason=%s", letter->source_topic, partition, offset,
             log_quote(letter->key), log_quote(span_of_str(reason)));
  send_letter(d, letter, &message);
}

bool delivery_wait_for_dead_letters(struct delivery *d)
{
  while (atomic_load(&d->n_catalogue_letters) > 0) {
    if (!may_wait(d))
      return false;
  }
  return true;
}
