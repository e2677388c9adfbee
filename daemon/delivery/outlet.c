/* SPDX-License-Identifier: Apache-2.0 */
/* The outlet's thread, and its list of messages that wait to be sent again. */
#include "daemon/delivery/outlet.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/renewal_wait.h"

enum { POLL_MS = 100, BUSY_POLL_MS = 10, RETRY_MS = 250 };

/* How long a new producer may take to learn where its topic's partitions are. */
enum { PREPARE_MS = 1000 };

/* How long a retired producer may take to send its messages. */
enum { TAKE_BACK_MS = 1000 };

struct outlet {
  struct outlet_config with;
  struct kafka_layers layers;
  pthread_rwlock_t lock; /* keeps the sender from being replaced. The outlet's thread needs it only to replace it */
  _Atomic(const char *) topic; /* see outlet_prepare(); NULL: none */
  struct sender *sender;
  struct sender *retired;         /* it has former certificates, and reports to come; NULL if there is none */
  int64_t take_back_due_ns;       /* when to take back what the retired one could not send */
  struct sender *alone;           /* sends one message a batch; opened at its first use. Thread: the outlet's */
  struct renewal_wait alone_wait; /* until `alone` may be opened, after it could not be */
  struct renewal_wait renewal;    /* the same for `sender` */
  pthread_mutex_t mutex;
  struct outlet_item *first; /* of the messages to send again */
  struct outlet_item *last;
  _Atomic size_t n_waiting;
  int64_t due_ns; /* when to send them. Thread: the outlet's */
  _Atomic bool is_away;
  struct pulse pulse;
  _Atomic bool is_stopping;
  pthread_t thread;
  bool has_thread;
};

size_t outlet_n_waiting(const struct outlet *o)
{
  return atomic_load_explicit(&o->n_waiting, memory_order_relaxed);
}

bool outlet_is_away(struct outlet *o)
{
  return atomic_load(&o->is_away);
}

static void end_item(struct outlet *o, struct outlet_item *item, enum outlet_end end, const char *reason,
                     const struct sender_message *message)
{
  struct sender_message *copy = item->copy; /* freed last: `ended` may free the item, and `message` may be the copy */

  item->copy = NULL;
  o->with.ended(o->with.context, item, end, reason, message);
  mem_free(&copy);
}

/* ---- The list of messages to send again ---- */

static void push_waiting(struct outlet *o, struct outlet_item *item)
{
  pthread_mutex_lock(&o->mutex);
  item->next = NULL;
  if (o->last)
    o->last->next = item;
  else
    o->first = item;
  o->last = item;
  atomic_fetch_add(&o->n_waiting, 1);
  pthread_mutex_unlock(&o->mutex);
}

static void push_waiting_front(struct outlet *o, struct outlet_item *item)
{
  pthread_mutex_lock(&o->mutex);
  item->next = o->first;
  o->first = item;
  if (!o->last)
    o->last = item;
  atomic_fetch_add(&o->n_waiting, 1);
  pthread_mutex_unlock(&o->mutex);
}

static struct outlet_item *pop_waiting(struct outlet *o)
{
  pthread_mutex_lock(&o->mutex);
  struct outlet_item *item = o->first;
  if (item) {
    o->first = item->next;
    if (!o->first)
      o->last = NULL;
    atomic_fetch_sub(&o->n_waiting, 1);
  }
  pthread_mutex_unlock(&o->mutex);
  return item;
}

/* Keep a copy of the message to send again. If there is no memory for one, the message ends as refused. */
static void wait_with(struct outlet *o, struct outlet_item *item, const struct sender_message *message)
{
  if (!item->copy && sender_message_copy(message, &item->copy) != ERR_OK) {
    end_item(o, item, OUTLET_REFUSED, err_message(), message);
    return;
  }
  push_waiting(o, item);
}

/* ---- Reports of the producer ---- */

/* Should a failed message be sent again? Notes the failure in the item. */
static bool is_worth_repeating(const struct outlet *o, struct outlet_item *item, enum sender_fate fate, bool is_report)
{
  if (fate == SENDER_TOO_LARGE) { /* in a report: a broker refused the whole batch, and may accept the message alone */
    bool was_alone = item->is_alone;
    item->is_alone = true;
    return is_report && !was_alone;
  }
  if (!o->with.is_patient)
    return false;
  return fate == SENDER_AWAY || (fate == SENDER_UNSURE && ++item->n_unsure < SENDER_UNSURE_MAX);
}

static void note_away(struct outlet *o, const char *reason, const char *topic)
{
  if (!atomic_exchange(&o->is_away, true))
    log_warn("delivery_waiting", "outlet=%s topic=%s reason=%s note=\"sent again until a broker accepts it\"",
             o->with.name, topic, log_quote(span_of_str(reason)));
}

/* Nothing is away any more once a broker has accepted or refused the last waiting message. A message that was queued
 * again proves nothing. */
static void note_back(struct outlet *o)
{
  if (atomic_load(&o->is_away) && outlet_n_waiting(o) == 0 && atomic_exchange(&o->is_away, false))
    log_info("delivery_resumed", "outlet=%s", o->with.name);
}

static void on_failure(struct outlet *o, struct outlet_item *item, enum sender_fate fate, const char *reason,
                       const struct sender_message *message, bool is_report)
{
  bool is_closing = atomic_load(&o->is_stopping);

  if (is_closing) {
    end_item(o, item, OUTLET_CLOSED, reason, message);
  } else if (fate == SENDER_CLOSED) { /* a sender with former certificates could not send it */
    wait_with(o, item, message);
  } else if (fate == SENDER_FATAL) {
    end_item(o, item, OUTLET_LOST, reason, message);
  } else if (is_worth_repeating(o, item, fate, is_report)) {
    if (fate != SENDER_TOO_LARGE)
      note_away(o, reason, message->topic);
    wait_with(o, item, message);
  } else {
    end_item(o, item, OUTLET_REFUSED, reason, message);
    note_back(o);
  }
}

static void on_report(void *context, const struct sender_report *report)
{
  struct outlet *o = context;
  struct outlet_item *item = report->opaque;

  if (report->fate == SENDER_DELIVERED) {
    end_item(o, item, OUTLET_DELIVERED, NULL, NULL);
    note_back(o);
  } else {
    on_failure(o, item, report->fate, report->reason, report->message, true);
  }
}

/* ---- Sending ---- */

bool outlet_send(struct outlet *o, struct outlet_item *item, const struct sender_message *message)
{
  struct sender_message own = *message;
  const char *reason;

  own.opaque = item;
  pthread_rwlock_rdlock(&o->lock);
  enum sender_fate fate = sender_try(o->sender, &own, &reason);
  pthread_rwlock_unlock(&o->lock);
  if (fate == SENDER_FULL)
    return false;
  if (fate != SENDER_QUEUED)
    on_failure(o, item, fate, reason, &own, false);
  return true;
}

void outlet_send_later(struct outlet *o, struct outlet_item *item, const struct sender_message *message)
{
  if (!outlet_send(o, item, message))
    wait_with(o, item, message);
}

/* A producer was opened, or could not be: then it is tried again later. */
static void note_opened(struct renewal_wait *wait, const struct outlet *o, err_code_t err)
{
  if (err == ERR_OK)
    renewal_wait_end(wait);
  else
    renewal_wait_begin(wait, o->with.name);
}

static struct sender *sender_for(struct outlet *o, const struct outlet_item *item)
{
  static const struct kafka_property one[] = { { "batch.num.messages", "1" } };
  struct kafka_layers layers = o->layers;

  layers.client = NULL;
  if (!item->is_alone)
    return o->sender;
  if (!o->alone && renewal_wait_is_over(&o->alone_wait)) {
    kafka_layers_add(&layers, one, 1);
    note_opened(&o->alone_wait, o, sender_open(&layers, on_report, o, &o->alone));
  }
  return o->alone ? o->alone : o->sender;
}

/* Send one message again. Returns false if the next one would fail for the same reason: then wait. */
static bool send_waiting_one(struct outlet *o, struct outlet_item *item)
{
  struct sender_message *copy = item->copy;
  const char *reason;

  copy->opaque = item;
  item->copy = NULL; /* not after sender_try(): the report may come first */
  enum sender_fate fate = sender_try(sender_for(o, item), copy, &reason);
  if (fate == SENDER_QUEUED) {
    mem_free(&copy);
    return true;
  }
  item->copy = copy;
  if (fate == SENDER_FULL || (fate == SENDER_AWAY && o->with.is_patient)) {
    push_waiting_front(o, item);
    o->due_ns = clock_now_ns() + (fate == SENDER_FULL ? BUSY_POLL_MS : RETRY_MS) * CLOCK_NS_PER_MS;
    return false;
  }
  on_failure(o, item, fate, reason, copy, false);
  return true;
}

/* Send every waiting message once. A message that fails again waits for the next round. */
static void send_waiting(struct outlet *o)
{
  size_t n = outlet_n_waiting(o);

  if (n == 0 || clock_now_ns() < o->due_ns)
    return;
  o->due_ns = clock_now_ns() + RETRY_MS * CLOCK_NS_PER_MS;
  for (size_t i = 0; i < n; i++) {
    struct outlet_item *item = pop_waiting(o);
    if (!item || !send_waiting_one(o, item))
      return;
  }
}

/* ---- Certificates that have changed ---- */

static void replace_sender(struct outlet *o, struct sender *next)
{
  pthread_rwlock_wrlock(&o->lock);
  o->retired = o->sender;
  o->sender = next;
  pthread_rwlock_unlock(&o->lock);
  o->take_back_due_ns = clock_now_ns() + TAKE_BACK_MS * CLOCK_NS_PER_MS;
}

/* Poll the retired sender until a broker has all of its messages. Those that it cannot send, because no broker lets it
 * in, are taken back. Those that it has sent are not, or brokers might get them twice. */
static void poll_retired(struct outlet *o)
{
  if (clock_now_ns() >= o->take_back_due_ns)
    sender_take_back(o->retired);
  sender_poll(o->retired, 0);
  if (sender_n_waiting(o->retired) == 0)
    sender_close(&o->retired);
}

/* Close the producer that sends messages alone, once brokers have answered for what it has sent. What it has not sent
 * is taken back. Those reports are served before the look: otherwise the messages would be sent here again. The next
 * message opens another producer. */
static void give_up_alone(struct outlet *o)
{
  sender_take_back(o->alone);
  sender_poll(o->alone, 0);
  if (sender_n_waiting(o->alone) == 0)
    sender_close(&o->alone);
}

static void prepare(struct outlet *o, struct sender *s)
{
  const char *topic = atomic_load(&o->topic);

  if (topic)
    sender_prepare(s, topic, PREPARE_MS);
}

void outlet_prepare(struct outlet *o, const char *topic)
{
  atomic_store(&o->topic, topic);
  pthread_rwlock_rdlock(&o->lock);
  prepare(o, o->sender);
  pthread_rwlock_unlock(&o->lock);
}

static void renew_sender(struct outlet *o)
{
  struct sender *next;
  err_code_t err = sender_open(&o->layers, on_report, o, &next);

  note_opened(&o->renewal, o, err);
  if (err != ERR_OK)
    return;
  prepare(o, next);
  log_info("kafka_client_renewed", "client=%s", o->with.name);
  replace_sender(o, next);
}

static void renew(struct outlet *o)
{
  if (o->alone && sender_is_outdated(o->alone))
    give_up_alone(o);
  if (o->retired)
    poll_retired(o);
  else if (sender_is_outdated(o->sender) && renewal_wait_is_over(&o->renewal))
    renew_sender(o);
}

static void *run(void *context)
{
  struct outlet *o = context;

  if (o->with.pulses)
    pulse_begin(o->with.pulses, &o->pulse, o->with.name);
  else
    pthread_setname_np(pthread_self(), o->with.name); /* not that of the thread that has opened it */
  while (!atomic_load(&o->is_stopping)) {
    pulse_beat();
    bool is_busy = o->retired || outlet_n_waiting(o) || (o->alone && sender_n_waiting(o->alone));
    sender_poll(o->sender, is_busy ? BUSY_POLL_MS : POLL_MS);
    if (o->alone)
      sender_poll(o->alone, 0);
    send_waiting(o);
    renew(o);
    if (o->with.ticked)
      o->with.ticked(o->with.context, o);
  }
  pulse_rest();
  return NULL;
}

err_t outlet_open(const struct outlet_config *config, struct outlet **out)
{
  AUTO(outlet_close) struct outlet *o = NULL;

  TRY(mem_array(1, sizeof *o, &o));
  o->with = *config;
  o->layers = *config->layers;
  o->layers.client = config->name;
  pthread_mutex_init(&o->mutex, NULL);
  pthread_rwlock_init(&o->lock, NULL);
  TRY(sender_open(&o->layers, on_report, o, &o->sender));
  if (pthread_create(&o->thread, NULL, run, o) != 0)
    FAIL(ERR_SYSTEM, "the thread of outlet %s cannot be started", config->name);
  o->has_thread = true;
  *out = o;
  o = NULL;
  return ERR_OK;
}

void outlet_close(struct outlet **o)
{
  struct outlet_item *item;

  if (!*o)
    return;
  atomic_store(&(*o)->is_stopping, true);
  if ((*o)->has_thread)
    pthread_join((*o)->thread, NULL);
  sender_close(&(*o)->sender);
  sender_close(&(*o)->retired);
  sender_close(&(*o)->alone);
  while ((item = pop_waiting(*o)))
    end_item(*o, item, OUTLET_CLOSED, NULL, NULL);
  pthread_mutex_destroy(&(*o)->mutex);
  pthread_rwlock_destroy(&(*o)->lock);
  mem_free(o);
}
