/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/delivery/delivery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/mem.h"
#include "base/region.h"
#include "daemon/pulse.h"
#include "daemon/delivery/reply_topics.h"

/* More answers that wait to be sent again than this, and nobody adds to them. */
enum { BACKOFF_NS = 1000000, WAITING_MAX = 1000 };

struct delivery {
  struct delivery_config with;
  struct outlet *answers;
  struct reply_topics *reply_topics; /* NULL: queries may name none */
  struct dead_letters *letters;
  _Atomic(struct query_reader *) queries;
  _Atomic(struct alarm *) alarm;
  _Atomic bool has_alarmed;
  _Atomic size_t n_replies; /* on their way */
  _Atomic int64_t give_up_ns; /* 0: never */
  struct log_limit limit;
};

/* What a reply has become: each is smaller than the one before. */
enum stage { STAGE_REPLY, STAGE_ERROR, STAGE_BARE_ERROR };

/* A reply on its way, with what an error in its place needs. */
struct sent {
  struct reply_topics_item item; /* first: the outlets know it by this */
  enum stage stage;
  bool has_topic; /* of the query's own */
  bool has_key;
  enum wire_format format;
  uint32_t ticket;
  int32_t partition;
  int64_t offset;
  size_t n_key;
  size_t n_id;
  size_t n_space;
  uint8_t bytes[]; /* key, id, space */
};

static struct span key_of(const struct sent *sent)
{
  return span_of(sent->bytes, sent->n_key);
}

static void end_ticket(void *context, uint32_t ticket)
{
  struct delivery *d = context;
  struct query_reader *queries = atomic_load(&d->queries);

  if (queries)
    query_reader_done(queries, ticket);
}

static void forget(struct delivery *d, struct sent *sent)
{
  mem_free(&sent);
  atomic_fetch_sub(&d->n_replies, 1);
}

static void raise_alarm(struct delivery *d, err_code_t err)
{
  struct alarm *alarm = atomic_load(&d->alarm);

  if (alarm && !atomic_exchange(&d->has_alarmed, true))
    alarm_raise(alarm, "delivery", err);
}

/* ---- What replaces a reply that no broker takes ---- */

/* The query itself is not at hand any more: the letter's headers say where it is. */
static void send_letter_instead(struct delivery *d, struct sent *sent, const char *reason)
{
  char text[512];

  snprintf(text, sizeof text, "the query cannot be answered: topic %s does not take the reply: %s",
           d->with.answer_topic, reason);
  struct delivery_dead_letter letter = {
    .topic = d->with.dead_letter_topic,
    .has_key = sent->has_key,
    .key = key_of(sent),
    .source_topic = d->with.query_topic,
    .partition = sent->partition,
    .offset = sent->offset,
    .reason = text,
    .is_query = true,
    .ticket = sent->ticket,
  };
  delivery_dead_letter(d, &letter);
  forget(d, sent);
}

static err_t send_error(struct delivery *d, struct sent *sent, const char *message)
{
  AUTO(region_fini) struct region scratch = { 0 };
  bool is_bare = sent->stage == STAGE_BARE_ERROR;
  struct sender_header header = { "content-type", span_of_str(wire_content_type(sent->format)) };
  struct answer answer = {
    .id = span_of(sent->bytes + sent->n_key, is_bare ? 0 : sent->n_id),
    .space = span_of(sent->bytes + sent->n_key + sent->n_id, is_bare ? 0 : sent->n_space),
    .error = ANSWER_INTERNAL,
    .error_message = message,
  };
  struct sender_message error = {
    .topic = d->with.answer_topic,
    .has_key = sent->has_key && !is_bare,
    .key = key_of(sent),
    .has_value = true,
    .headers = &header,
    .n_headers = 1,
  };

  TRY(wire_encode_answer(&answer, sent->format, &scratch, &error.value));
  sent->item = (struct reply_topics_item){ 0 };
  counters_add(&d->with.counters->errors, 1);
  outlet_send_later(d->answers, &sent->item.item, &error);
  return ERR_OK;
}

/* A reply is refused: the topic is not there, is not ours to write, or takes no message of this size. */
static void replace(struct delivery *d, struct sent *sent, const char *reason)
{
  char message[512];
  bool was_own = sent->stage == STAGE_REPLY && sent->has_topic;

  if (log_limit_allows(&d->limit, "reply_not_sent"))
    log_warn("reply_not_sent", "partition=%" PRId32 " offset=%" PRId64 " kind=%s topic=%s reason=%s", sent->partition,
             sent->offset, sent->stage == STAGE_REPLY ? "answer" : "error", was_own ? "reply_topic" : "configured",
             log_quote(span_of_str(reason)));
  if (sent->stage == STAGE_BARE_ERROR) {
    send_letter_instead(d, sent, reason);
    return;
  }
  sent->stage++;
  snprintf(message, sizeof message, "no broker took the answer for %s: %s",
           was_own ? "the query's reply_topic" : "the configured topic", reason);
  if (send_error(d, sent, message) != ERR_OK) { /* without memory it is answered after a restart */
    raise_alarm(d, ERR_MEMORY);
    forget(d, sent);
  }
}

/* ---- Ends ---- */

static void on_lost(struct delivery *d, struct sent *sent, const char *reason)
{
  raise_alarm(d, err_set(ERR_KAFKA, __FILE__, __LINE__, "the producer of answers is lost: %s", reason));
  forget(d, sent); /* its ticket stays open: it is answered after a restart */
}

static void end_reply(struct delivery *d, struct sent *sent, enum outlet_end end, const char *reason)
{
  switch (end) {
  case OUTLET_DELIVERED:
    end_ticket(d, sent->ticket);
    forget(d, sent);
    break;
  case OUTLET_REFUSED:
    replace(d, sent, reason);
    break;
  case OUTLET_CLOSED: /* stopping: it stays uncommitted, and is answered after a restart */
    forget(d, sent);
    break;
  case OUTLET_LOST:
    on_lost(d, sent, reason);
    break;
  }
}

static_assert(offsetof(struct sent, item) == 0 && offsetof(struct reply_topics_item, item) == 0,
              "the outlets' item is the reply");

static void on_answer_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                            const struct sender_message *message)
{
  (void)message;
  end_reply(context, (struct sent *)item, end, reason);
}

/* The producer of such replies may be lost, and they are not: their errors have another one. */
static void on_reply_topic_ended(void *context, struct reply_topics_item *item, enum outlet_end end, const char *reason)
{
  end_reply(context, (struct sent *)item, end == OUTLET_LOST ? OUTLET_REFUSED : end, reason);
}

/* ---- Opening and closing ---- */

static err_t open_outlets(struct delivery *d)
{
  struct outlet_config answers = {
    .name = "answers", .layers = d->with.layers, .is_patient = true, .context = d, .ended = on_answer_ended,
    .pulses = d->with.pulses,
  };
  struct dead_letters_config letters = { d->with.layers, d->with.counters, d, end_ticket, d->with.pulses };
  struct reply_topics_config topics = { d->with.layers, d->with.reply_timeout_ms, d, on_reply_topic_ended };

  TRY(dead_letters_open(&letters, &d->letters));
  TRY(outlet_open(&answers, &d->answers));
  return d->with.has_reply_topics ? reply_topics_open(&topics, &d->reply_topics) : ERR_OK;
}

err_t delivery_open(const struct delivery_config *config, struct delivery **out)
{
  AUTO(delivery_close) struct delivery *d = NULL;

  TRY(mem_array(1, sizeof *d, &d));
  d->with = *config;
  TRY(open_outlets(d));
  d->with.layers = NULL; /* the caller's; the outlets have copies */
  *out = d;
  d = NULL;
  return ERR_OK;
}

void delivery_give_up_at(struct delivery *d, int64_t ns)
{
  atomic_store(&d->give_up_ns, ns);
}

bool delivery_may_wait(struct delivery *d)
{
  int64_t give_up_ns = atomic_load(&d->give_up_ns);

  pulse_beat(); /* waiting for a broker is no standstill */
  if (give_up_ns && clock_now_ns() >= give_up_ns)
    return false;
  clock_sleep_ns(BACKOFF_NS);
  return true;
}

static size_t n_open(const struct delivery *d)
{
  return atomic_load(&d->n_replies) + (d->letters ? dead_letters_n_open(d->letters) : 0);
}

void delivery_drain(struct delivery *d)
{
  while (n_open(d) > 0 && delivery_may_wait(d))
    ;
}

void delivery_close(struct delivery **d)
{
  if (!*d)
    return;
  delivery_drain(*d);
  if (n_open(*d) > 0)
    log_warn("undelivered", "replies=%zu dead_letters=%zu note=\"uncommitted: taken up again after a restart\"",
             atomic_load(&(*d)->n_replies), dead_letters_n_open((*d)->letters));
  reply_topics_close(&(*d)->reply_topics); /* each before the one that takes what it refuses */
  outlet_close(&(*d)->answers);
  dead_letters_close(&(*d)->letters);
  mem_free(d);
}

void delivery_attach(struct delivery *d, struct query_reader *queries, struct alarm *alarm)
{
  atomic_store(&d->alarm, alarm);
  atomic_store(&d->queries, queries);
}

/* ---- Sending ---- */

static err_t make_sent(struct delivery *d, const struct delivery_reply *reply, struct sent **out)
{
  const struct span parts[] = { reply->key, reply->id, reply->space };
  struct sent *sent;
  size_t n = 0;

  TRY(mem_array(1, sizeof *sent + reply->key.n + reply->id.n + reply->space.n, &sent));
  sent->has_topic = reply->topic != NULL;
  sent->has_key = reply->has_key;
  sent->format = reply->format;
  sent->ticket = reply->ticket;
  sent->partition = reply->partition;
  sent->offset = reply->offset;
  sent->n_key = reply->key.n;
  sent->n_id = reply->id.n;
  sent->n_space = reply->space.n;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (parts[i].n)
      memcpy(sent->bytes + n, parts[i].p, parts[i].n);
    n += parts[i].n;
  }
  atomic_fetch_add(&d->n_replies, 1);
  *out = sent;
  return ERR_OK;
}

/* Wait for room in the queue. When the daemon stops, the reply is dropped and its ticket stays open. */
static void send_answer(struct delivery *d, struct sent *sent, const struct sender_message *message)
{
  while (!outlet_send(d->answers, &sent->item.item, message)) {
    if (!delivery_may_wait(d)) {
      forget(d, sent);
      return;
    }
  }
}

static void send_to_reply_topic(struct delivery *d, struct sent *sent, const struct sender_message *message)
{
  const char *reason = d->reply_topics ? reply_topics_send(d->reply_topics, &sent->item, message)
                                       : "query.reply_topics names no topic";

  if (reason)
    replace(d, sent, reason);
}

void delivery_reply(struct delivery *d, const struct delivery_reply *reply)
{
  struct sender_header header = { "content-type", span_of_str(wire_content_type(reply->format)) };
  struct sender_message message = {
    .topic = reply->topic ? reply->topic : d->with.answer_topic,
    .has_key = reply->has_key,
    .key = reply->key,
    .has_value = true,
    .value = reply->value,
    .headers = &header,
    .n_headers = 1,
  };
  struct sent *sent;

  while (outlet_n_waiting(d->answers) >= WAITING_MAX) {
    if (!delivery_may_wait(d))
      return;
  }
  err_code_t err = make_sent(d, reply, &sent);
  if (err != ERR_OK)
    raise_alarm(d, err); /* it is answered after a restart */
  else if (reply->topic)
    send_to_reply_topic(d, sent, &message);
  else
    send_answer(d, sent, &message);
}

void delivery_fail(struct delivery *d, err_code_t err)
{
  raise_alarm(d, err);
}

bool delivery_dead_letter(struct delivery *d, const struct delivery_dead_letter *letter)
{
  if (dead_letters_send(d->letters, letter))
    return true;
  if (letter->is_query)
    dead_letters_drop(d->letters, letter);
  return letter->is_query;
}

bool delivery_has_room(struct delivery *d)
{
  return outlet_n_waiting(d->answers) < WAITING_MAX;
}
