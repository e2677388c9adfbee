/* SPDX-License-Identifier: Apache-2.0 */
/* Replies from the search workers to the outlets, and what replaces a reply that no broker accepts. */
#include "daemon/delivery/delivery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/region.h"
#include "daemon/delivery/heartbeat.h"
#include "daemon/delivery/reply_message.h"
#include "daemon/health/pulse.h"
#include "ingest/wire/wire_partial.h"

/* New replies wait while WAITING_MAX answers wait to be sent again. REPLIES_MAX replies can be on their way: more than
 * the query thread allows queries to be uncommitted. */
enum { BACKOFF_NS = 1000000, WAITING_MAX = 1000, REPLIES_MAX = 100000 };

struct delivery {
  struct delivery_config with;
  struct outlet *answers;
  struct reply_topics *reply_topics; /* NULL: queries may name none */
  struct dead_letters *letters;
  struct reply_pool *replies; /* on their way */
  struct heartbeat heartbeat; /* of a shard */
  _Atomic bool has_alarmed;
  _Atomic int64_t give_up_ns; /* 0: never */
};

static void raise_alarm(struct delivery *d, err_code_t err)
{
  if (d->with.alarm && !atomic_exchange(&d->has_alarmed, true))
    alarm_raise(d->with.alarm, "delivery", err);
}

/* Give up a reply whose ticket stays open: the query is answered, and traced, after a restart. */
static void drop_reply(struct delivery *d, struct reply_record *reply)
{
  tracing_drop(d->with.tracing, reply->traced);
  reply_pool_put(d->replies, reply);
}

/* ---- What replaces a reply that no broker accepts ---- */

/* The query's record is no longer in memory. The letter's headers say where the query is in the topic. */
static void send_letter_instead(struct delivery *d, struct reply_record *reply, const char *reason)
{
  char text[512];

  snprintf(text, sizeof text, "the query cannot be answered: topic %s does not take the reply: %s",
           d->with.answer_topic, reason);
  struct dead_letter letter = {
    .topic = d->with.dead_letter_topic,
    .has_key = reply->has_key,
    .key = reply->key,
    .source_topic = d->with.query_topic,
    .partition = reply->partition,
    .offset = reply->offset,
    .reason = text,
    .kind = LETTER_NO_REPLY,
    .waiter = DEAD_LETTER_WAITER_QUERY,
    .ticket = reply->ticket,
  };
  delivery_send_dead_letter(d, &letter);
  tracing_end(d->with.tracing, reply->traced, false);
  reply_pool_put(d->replies, reply);
}

static err_t send_error(struct delivery *d, struct reply_record *reply, const char *message)
{
  AUTO(region_fini) struct region scratch = { 0 };
  static const struct trace_headers none;
  bool is_bare = reply->stage == REPLY_STAGE_BARE_ERROR;
  struct sender_header headers[REPLY_HEADERS];
  struct answer answer = { .error = ANSWER_INTERNAL, .error_message = message };
  struct sender_message error = {
    .topic = d->with.answer_topic,
    .has_value = true,
    .headers = headers,
    .n_headers = reply_message_headers(reply->format, is_bare ? &none : &reply->trace, headers),
  };

  if (!is_bare) {
    answer.id = reply->id;
    answer.space = reply->space;
  }
  if (!is_bare || reply->head.n > 0) { /* a part needs its key */
    error.has_key = reply->has_key;
    error.key = reply->key;
  }
  TRY(wire_encode_answer(&answer, reply->format, &scratch, &error.value));
  if (reply->head.n > 0)
    TRY(wire_complete_partial(reply->head, error.value, &scratch, &error.value));
  reply->item = (struct reply_topics_item){ 0 };
  counters_add(&d->with.counters->errors[answer.error], 1);
  query_trace_note_sent(reply->traced, error.topic);
  outlet_send_later(d->answers, &reply->item.item, &error);
  return ERR_OK;
}

/* A reply is refused: its topic is missing, or we may not write there, or the message is too large for it. */
static void replace(struct delivery *d, struct reply_record *reply, const char *reason)
{
  char message[REPLY_REASON_BYTES];
  bool is_answer = reply->stage == REPLY_STAGE_ANSWER;
  bool was_own_topic = is_answer && reply->route == REPLY_TO_OWN_TOPIC;

  log_warn("reply_not_sent", "partition=%" PRId32 " offset=%" PRId64 " kind=%s topic=%s reason=%s", reply->partition,
           reply->offset, is_answer ? "answer" : "error", was_own_topic ? "reply_topic" : "configured",
           log_quote(span_of_str(reason)));
  if (reply->stage == REPLY_STAGE_BARE_ERROR) {
    send_letter_instead(d, reply, reason);
    return;
  }
  reply->stage++;
  reply_message_explain(reply->n_value_bytes, was_own_topic, reason, message);
  query_trace_note_error(reply->traced, query_error_words[ANSWER_INTERNAL], message);
  if (send_error(d, reply, message) != ERR_OK) { /* out of memory */
    raise_alarm(d, ERR_MEMORY);
    drop_reply(d, reply);
  }
}

/* ---- Ends ---- */

/* Measure from the query's record to the delivery. An error in place of the answer is none. */
static void measure_delivery(struct delivery *d, const struct reply_record *reply)
{
  int64_t now_ns = clock_now_ns();

  if (reply->asked_ns && reply->stage == REPLY_STAGE_ANSWER)
    hist_add(&d->with.counters->answer_us, (uint64_t)(now_ns - reply->asked_ns) / CLOCK_NS_PER_US);
}

static void end_reply(struct delivery *d, struct reply_record *reply, enum outlet_end end, const char *reason)
{
  switch (end) {
  case OUTLET_DELIVERED:
    measure_delivery(d, reply);
    tracing_end(d->with.tracing, reply->traced, true);
    offset_tracker_done(d->with.tracker, reply->ticket);
    reply_pool_put(d->replies, reply);
    return;
  case OUTLET_REFUSED:
    replace(d, reply, reason);
    return;
  case OUTLET_CLOSED:
    break;
  case OUTLET_LOST:
    raise_alarm(d, err_set(ERR_KAFKA, __FILE__, __LINE__, "the producer of answers is lost: %s", reason));
    break;
  }
  drop_reply(d, reply);
}

static_assert(offsetof(struct reply_record, item) == 0 && offsetof(struct reply_topics_item, item) == 0,
              "an outlet's item is cast to the record of the reply");

static void on_answer_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                            const struct sender_message *message)
{
  struct delivery *d = context;

  (void)message;
  if (!heartbeat_end(&d->heartbeat, item))
    end_reply(d, (struct reply_record *)item, end, reason);
}

static void on_answers_ticked(void *context, struct outlet *outlet)
{
  struct delivery *d = context;

  heartbeat_step(&d->heartbeat, outlet);
}

/* If the producer for reply topics is lost, the queries are not: their errors go through the producer of answers. */
static void on_reply_topic_ended(void *context, struct reply_topics_item *item, enum outlet_end end, const char *reason)
{
  end_reply(context, (struct reply_record *)item, end == OUTLET_LOST ? OUTLET_REFUSED : end, reason);
}

/* ---- Opening and closing ---- */

static err_t open_outlets(struct delivery *d)
{
  struct pulses *pulses = d->with.alarm ? &d->with.alarm->pulses : NULL;
  struct outlet_config answers = {
    .name = "answers",
    .layers = d->with.layers,
    .is_patient = true,
    .context = d,
    .ended = on_answer_ended,
    .ticked = d->with.n_shards ? on_answers_ticked : NULL,
    .pulses = pulses,
  };
  struct dead_letters_config letters = { d->with.layers, d->with.counters, d->with.tracker, d->with.alarm };
  struct reply_topics_config topics = { d->with.layers, d->with.reply_timeout_ms, d, on_reply_topic_ended };

  if (d->with.n_shards)
    TRY(heartbeat_init(d->with.answer_topic, d->with.shard, d->with.n_shards, &d->heartbeat));
  TRY(dead_letters_open(&letters, &d->letters));
  TRY(outlet_open(&answers, &d->answers));
  return d->with.has_reply_topics ? reply_topics_open(&topics, &d->reply_topics) : ERR_OK;
}

err_t delivery_open(const struct delivery_config *config, struct delivery **out)
{
  AUTO(delivery_close) struct delivery *d = NULL;

  TRY(mem_array(1, sizeof *d, &d));
  d->with = *config;
  TRY(reply_pool_open(REPLIES_MAX, &d->replies));
  TRY(open_outlets(d));
  d->with.layers = NULL; /* the outlets have copies */
  *out = d;
  d = NULL;
  return ERR_OK;
}

void delivery_give_up_at(struct delivery *d, int64_t ns)
{
  atomic_store(&d->give_up_ns, ns);
}

/* Sleep briefly. Returns false if it is time to give up. */
static bool back_off(struct delivery *d)
{
  int64_t give_up_ns = atomic_load(&d->give_up_ns);

  pulse_beat(); /* a thread that waits for a broker is not stuck */
  if (give_up_ns && clock_now_ns() >= give_up_ns)
    return false;
  clock_sleep_ns(BACKOFF_NS);
  return true;
}

static size_t n_replies(const struct delivery *d)
{
  return d->replies ? reply_pool_n_used(d->replies) : 0;
}

static size_t n_letters(const struct delivery *d)
{
  return d->letters ? dead_letters_n_open(d->letters) : 0;
}

void delivery_drain(struct delivery *d)
{
  while (n_replies(d) + n_letters(d) > 0 && back_off(d))
    ;
}

void delivery_close(struct delivery **d)
{
  if (!*d)
    return;
  delivery_drain(*d);
  if (n_replies(*d) + n_letters(*d) > 0)
    log_warn("undelivered", "replies=%zu dead_letters=%zu note=\"uncommitted: handled again after a restart\"",
             n_replies(*d), n_letters(*d));
  reply_topics_close(&(*d)->reply_topics); /* its refused replies become errors among the answers */
  outlet_close(&(*d)->answers);            /* its refused errors become dead letters */
  dead_letters_close(&(*d)->letters);
  reply_pool_close(&(*d)->replies);
  heartbeat_fini(&(*d)->heartbeat);
  mem_free(d);
}

/* ---- Sending ---- */

/* Wait for a free record, and for the answers that wait to be sent again. There is a record for each query that is not
 * committed. Returns NULL if it is time to give up. */
static struct reply_record *wait_for_record(struct delivery *d, bool never_blocks)
{
  struct reply_record *record;

  while ((!never_blocks && !delivery_has_room(d)) || !(record = reply_pool_take(d->replies))) {
    if (!back_off(d))
      return NULL;
  }
  return record;
}

static err_t fill_record(struct reply_record *record, const struct delivery_reply *reply)
{
  record->route = reply->route;
  record->has_key = reply->has_key;
  record->format = reply->format;
  record->ticket = reply->ticket;
  record->partition = reply->partition;
  record->offset = reply->offset;
  record->asked_ns = reply->asked_ns;
  record->n_value_bytes = reply->value.n;
  record->traced = reply->traced;
  return reply_record_copy(record,
                           &(struct reply_texts){ reply->key, reply->id, reply->space, reply->head, &reply->trace });
}

/* Wait for room in the queue. If it is time to give up, the reply is dropped. */
static void send_answer(struct delivery *d, struct reply_record *record, const struct sender_message *message,
                        bool never_blocks)
{
  if (never_blocks) {
    outlet_send_later(d->answers, &record->item.item, message);
    return;
  }
  while (!outlet_send(d->answers, &record->item.item, message)) {
    if (!back_off(d)) {
      drop_reply(d, record);
      return;
    }
  }
}

static void send_to_own_topic(struct delivery *d, struct reply_record *record, const struct sender_message *message)
{
  const char *reason = d->reply_topics ? reply_topics_send(d->reply_topics, &record->item, message)
                                       : "query.reply_topics names no topic";

  if (reason)
    replace(d, record, reason);
}

void delivery_send_reply(struct delivery *d, const struct delivery_reply *reply)
{
  struct sender_header headers[REPLY_HEADERS];
  struct sender_message message = {
    .topic = reply->route == REPLY_TO_OWN_TOPIC ? reply->own_topic : d->with.answer_topic,
    .has_key = reply->has_key,
    .key = reply->key,
    .has_value = true,
    .value = reply->value,
    .headers = headers,
    .n_headers = reply_message_headers(reply->format, &reply->trace, headers),
  };
  struct reply_record *record = wait_for_record(d, reply->never_blocks);

  if (!record) { /* as drop_reply() */
    tracing_drop(d->with.tracing, reply->traced);
    return;
  }
  query_trace_note_sent(reply->traced, message.topic);
  err_code_t err = fill_record(record, reply);
  if (err != ERR_OK) {
    raise_alarm(d, err);
    drop_reply(d, record);
  } else if (reply->route == REPLY_TO_OWN_TOPIC) {
    send_to_own_topic(d, record, &message);
  } else {
    send_answer(d, record, &message, reply->never_blocks);
  }
}

void delivery_fail(struct delivery *d, err_code_t err)
{
  raise_alarm(d, err);
}

bool delivery_send_dead_letter(struct delivery *d, const struct dead_letter *letter)
{
  bool is_of_query = letter->waiter == DEAD_LETTER_WAITER_QUERY;

  if (dead_letters_send(d->letters, letter))
    return true;
  if (is_of_query)
    dead_letters_drop(d->letters, letter);
  return is_of_query;
}

void delivery_prepare(struct delivery *d)
{
  outlet_prepare(d->answers, d->with.answer_topic);
}

bool delivery_is_answer_topic_away(struct delivery *d)
{
  return outlet_is_away(d->answers);
}

bool delivery_has_room(struct delivery *d)
{
  return outlet_n_waiting(d->answers) < WAITING_MAX;
}
