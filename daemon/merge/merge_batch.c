/* SPDX-License-Identifier: Apache-2.0 */
/* From parts to messages, and what replaces a message that no broker takes. */
#include "daemon/merge/merge_batch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"
#include "daemon/delivery/reply_message.h"
#include "daemon/health/pulse.h"
#include "daemon/merge/merge_decide.h"
#include "daemon/queries/reply.h"
#include "ingest/wire/wire_partial.h"

enum { TOPIC_TIMEOUT_MS = 500, VERIFY_TIMEOUT_MS = 1000 };

/* After so many failures of an answer, while brokers answer, its own topic is taken for one that nobody may write, or
 * that is not there: one broker alone may not know a new topic yet. */
enum { CLOSED_MAX = 3 };

err_t merge_batch_init(const struct merge_batch_context *context, struct merge_batch *out)
{
  *out = (struct merge_batch){ .with = *context };
  enum isa isa = context->config->isa == N_ISAS ? isa_detect() : context->config->isa;
  TRY(kernels_get(isa, &out->kernels));
  TRY(mem_array(MERGE_BATCH_MAX, sizeof *out->replies, &out->replies));
  TRY(mem_array(MERGE_BATCH_MAX * REPLY_HEADERS, sizeof *out->headers, &out->headers));
  TRY(mem_array(2 * MERGE_BATCH_MAX, sizeof *out->messages, &out->messages));
  TRY(mem_array(2 * MERGE_BATCH_MAX, sizeof *out->group, &out->group));
  out->at_once = MERGE_BATCH_MAX;
  return wire_encode_partial(&(struct partial){ .kind = PARTIAL_ANSWERED }, &out->mark_region, &out->mark);
}

void merge_batch_fini(struct merge_batch *b)
{
  mem_free(&b->replies);
  mem_free(&b->headers);
  mem_free(&b->messages);
  mem_free(&b->group);
  region_fini(&b->region);
  region_fini(&b->mark_region);
}

bool merge_batch_has_room(const struct merge_batch *b)
{
  return b->n < MERGE_BATCH_MAX && b->region.taken_bytes < MERGE_BATCH_BYTES;
}

void merge_batch_clear(struct merge_batch *b)
{
  for (size_t i = 0; i < b->n; i++)
    tracing_drop(b->with.tracing, b->replies[i].traced); /* what was not sent is read again */
  b->n = b->n_sent = 0;
  b->at_once = MERGE_BATCH_MAX;
  region_trim(&b->region, MERGE_BATCH_BYTES);
}

/* ---- Making answers ---- */

/* Decode the answer of a part. One that cannot be read is an error of its shard. */
static err_t read_answer(struct merge_part *part, struct region *r)
{
  struct span message;
  err_code_t err = wire_decode_answer(part->head.answer, r, &part->answer);

  if (err != ERR_WIRE)
    return err;
  TRY(region_copy(r, span_of_str(err_message()), &message));
  part->answer = (struct answer){ .error = ANSWER_INTERNAL, .error_message = (const char *)message.p };
  return ERR_OK;
}

static err_t read_parts(const struct open_join *join, struct region *r, struct merge_part **out)
{
  struct merge_part *parts;
  size_t i = 0;

  TRY(region_array(r, join->n_parts, sizeof *parts, &parts));
  for (const struct open_part *p = join->parts; p; p = p->next, i++) {
    TRY(wire_decode_partial(span_of(p->value, p->n), r, &parts[i].head));
    TRY(read_answer(&parts[i], r));
  }
  *out = parts;
  return ERR_OK;
}

/* Choose the topic: the one that the query names, if that is allowed and there; else the configured one. */
static err_t choose_topic(struct merge_batch *b, struct span named, struct merge_reply *reply)
{
  struct span topic;

  reply->topic = b->with.config->query.answer_topic;
  if (named.n == 0 || span_equal(named, span_of_str(reply->topic)) ||
      reply_verify_topic(b->with.config, named) != ERR_OK)
    return ERR_OK;
  TRY(region_copy(&b->region, named, &topic));
  if (!transaction_has_topic(b->with.transaction, (const char *)topic.p, TOPIC_TIMEOUT_MS))
    return ERR_OK;
  reply->topic = (const char *)topic.p;
  reply->is_own_topic = true;
  return ERR_OK;
}

static err_t copy(struct merge_batch *b, struct span from, struct span *out)
{
  return region_copy(&b->region, from, out);
}

static err_t take_query(struct merge_batch *b, const struct open_join *join, const struct partial *head,
                        struct merge_reply *reply)
{
  reply->digest = join->digest;
  reply->partition = join->partition;
  reply->first_offset = join->first_offset;
  reply->has_key = head->has_key;
  reply->key = head->key;
  reply->format = head->is_json ? WIRE_JSON : WIRE_PROTOBUF;
  reply->asked_unix_ms = head->asked_unix_ms;
  for (size_t i = 0; i < head->n_trace; i++)
    reply->trace.value[i] = head->trace[i];
  TRY(copy(b, join->key, &reply->part_key));
  return choose_topic(b, head->reply_topic, reply);
}

/* Encode an answer. If it cannot be, encode an error that says so. */
static err_t encode(struct merge_batch *b, const struct answer *answer, struct merge_reply *reply)
{
  char message[512];
  err_code_t err = wire_encode_answer(answer, reply->format, &b->region, &reply->value);

  if (err == ERR_OK || err == ERR_MEMORY)
    return err;
  snprintf(message, sizeof message, "the answer cannot be written: %s", err_message());
  struct answer error = { .id = answer->id, .error = ANSWER_INTERNAL, .error_message = message };
  reply->error = error.error;
  query_trace_note_error(reply->traced, query_error_words[ANSWER_INTERNAL], message);
  return wire_encode_answer(&error, reply->format, &b->region, &reply->value);
}

/* The shards have made spans of the search. Those of the merge begin with the first part. */
static void begin_trace(struct merge_batch *b, const struct open_join *join, const struct partial *head,
                        const struct answer *answer, struct merge_reply *reply)
{
  const struct query query = { .space = answer->space, .k = head->k };

  reply->traced = tracing_begin(b->with.tracing, &reply->trace, join->since_ns);
  if (!reply->traced)
    return;
  reply->traced->partition = join->partition;
  reply->traced->offset = join->first_offset;
  reply->traced->waited_ns = clock_now_ns();
  query_trace_note_answer(reply->traced, &query, answer);
}

err_t merge_batch_add(struct merge_batch *b, const struct open_join *join)
{
  struct merge_reply reply = { 0 };
  struct merge_part *parts;
  struct answer answer;

  TRY(read_parts(join, &b->region, &parts));
  TRY(take_query(b, join, &parts[0].head, &reply));
  TRY(merge_decide(b->kernels, parts, join->n_parts, &b->region, &answer));
  answer.merged_us = (uint32_t)((clock_now_ns() - join->since_ns) / CLOCK_NS_PER_US);
  reply.id = answer.id;
  reply.space = answer.space;
  reply.error = answer.error;
  reply.is_incomplete = !answer.error && answer.n_parts < answer.n_shards;
  begin_trace(b, join, &parts[0].head, &answer, &reply);
  TRY(encode(b, &answer, &reply));
  query_trace_note_sent(reply.traced, reply.topic);
  b->messages[b->n].fate = SENDER_QUEUED;
  b->replies[b->n++] = reply;
  return ERR_OK;
}

/* ---- Sending ---- */

static struct sender_message message_of(struct merge_batch *b, size_t i)
{
  const struct merge_reply *reply = &b->replies[i];
  struct sender_header *headers = &b->headers[i * REPLY_HEADERS];

  return (struct sender_message){
    .topic = reply->topic,
    .has_key = reply->has_key,
    .key = reply->key,
    .has_value = true,
    .value = reply->value,
    .headers = headers,
    .n_headers = reply_message_headers(reply->format, &reply->trace, headers),
  };
}

static struct sender_message mark_of(const struct merge_batch *b, size_t i)
{
  return (struct sender_message){
    .topic = b->with.config->query.partials_topic,
    .has_partition = true,
    .partition = b->replies[i].partition,
    .has_key = true,
    .key = b->replies[i].part_key,
    .has_value = true,
    .value = b->mark,
  };
}

/* List the messages: the answers first. Without transactions, an answer may be delivered already, and its mark not. */
static void list_messages(struct merge_batch *b)
{
  for (size_t i = 0; i < b->n; i++) {
    b->messages[i].message = message_of(b, i);
    b->messages[b->n + i].message = mark_of(b, i);
    b->messages[b->n + i].fate = SENDER_QUEUED;
  }
}

/* Put an error in the place of an answer that no broker takes. */
static err_t replace(struct merge_batch *b, struct merge_reply *reply, const char *reason)
{
  char message[REPLY_REASON_BYTES];

  log_warn("reply_not_sent", "id=%s topic=%s bytes=%zu reason=%s", log_quote(reply->id), reply->topic, reply->value.n,
           log_quote(span_of_str(reason)));
  reply_message_explain(reply->value.n, reply->is_own_topic, reason, message);
  reply->stage++;
  reply->n_unsure = 0;
  reply->topic = b->with.config->query.answer_topic;
  reply->is_own_topic = false;
  reply->is_incomplete = false;
  reply->error = ANSWER_INTERNAL;
  query_trace_note_error(reply->traced, query_error_words[ANSWER_INTERNAL], message);
  query_trace_note_sent(reply->traced, reply->topic);
  struct answer error = { .id = reply->id, .space = reply->space, .error = ANSWER_INTERNAL, .error_message = message };
  return wire_encode_answer(&error, reply->format, &b->region, &reply->value);
}

/* How many replies does the next group have? */
static size_t group_n(const struct merge_batch *b)
{
  return size_min(b->at_once, b->n - b->n_sent);
}

/* Does the failure of a group not say which reply is the cause? A mark never is: while a transaction waits for the
 * topic of an answer, all of its messages wait, and the first that times out may be a mark. A broker that refuses a
 * batch of messages as too large says so of each of them. */
static bool is_unclear(const struct merge_batch *b, size_t n)
{
  size_t n_causes = 0, n_too_large = 0;

  for (size_t i = 0; i < 2 * n; i++) {
    enum sender_fate fate = b->group[i].fate;
    n_causes += i < n && fate != SENDER_CLOSED && fate != SENDER_QUEUED && fate != SENDER_DELIVERED;
    n_too_large += fate == SENDER_TOO_LARGE;
  }
  return n_causes == 0 || n_too_large > 1;
}

/* Is the answer alone the cause of an aborted transaction? A broker that opens none for its topic says of no message
 * that it was the cause. */
static bool lacks_topic(const struct merge_batch *b, const struct merge_reply *reply)
{
  return group_n(b) == 1 && is_unclear(b, 1) && reply->is_own_topic && transaction_lacked_topic(b->with.transaction);
}

/* Count a failure of this answer, unless no broker answers. Returns whether it has failed CLOSED_MAX times by now. */
static bool count_failure(const struct merge_batch *b, struct merge_reply *reply)
{
  return !b->is_silent && ++reply->n_unsure >= CLOSED_MAX;
}

/* Is it known that no broker will take this answer? */
static bool is_refused(const struct merge_batch *b, const struct transaction_message *message,
                       struct merge_reply *reply)
{
  switch (message->fate) {
  case SENDER_TOO_LARGE:
  case SENDER_REFUSED:
    return true;
  case SENDER_AWAY:
    return reply->is_own_topic && count_failure(b, reply);
  case SENDER_UNSURE:
    return ++reply->n_unsure >= SENDER_UNSURE_MAX;
  case SENDER_CLOSED:
    return lacks_topic(b, reply) && count_failure(b, reply);
  default:
    return false;
  }
}

/* Drop a reply from the batch: nothing more can be sent for its query. */
static void give_up(struct merge_batch *b, size_t i)
{
  log_error("reply_given_up", "id=%s note=\"no broker takes even an error: the query stays unanswered\"",
            log_quote(b->replies[i].id));
  counters_add(&b->with.counters->undeliverable, 1);
  tracing_end(b->with.tracing, b->replies[i].traced, false);
  b->n--;
  memmove(&b->replies[i], &b->replies[i + 1], (b->n - i) * sizeof *b->replies);
  memmove(&b->messages[i], &b->messages[i + 1], (b->n - i) * sizeof *b->messages);
}

/* Replace all answers for a topic that nobody may write, and let later ones go to the configured topic. */
static err_t refuse_topic(struct merge_batch *b, const char *topic, const char *reason)
{
  transaction_refuse_topic(b->with.transaction, topic);
  for (size_t i = b->n_sent; i < b->n; i++) {
    struct merge_reply *reply = &b->replies[i];
    if (reply->is_own_topic && strcmp(reply->topic, topic) == 0 && b->messages[i].fate != SENDER_DELIVERED)
      TRY(replace(b, reply, reason));
  }
  return ERR_OK;
}

/* Could this answer's own topic be why the group failed? True only of the first answer for each topic, so that it is
 * asked for once. */
static bool is_topic_in_doubt(const struct merge_batch *b, size_t i)
{
  enum sender_fate fate = b->messages[i].fate;

  if (!b->replies[i].is_own_topic || fate == SENDER_DELIVERED || fate == SENDER_TOO_LARGE || fate == SENDER_REFUSED)
    return false;
  for (size_t k = b->n_sent; k < i; k++) {
    if (b->replies[k].is_own_topic && strcmp(b->replies[k].topic, b->replies[i].topic) == 0)
      return false;
  }
  return true;
}

/* After a failure, ask whether the topics that queries named are still there: librdkafka does not ask by itself, and
 * waits for a deleted topic until some message of the transaction times out, which may be any. Once it has heard that
 * the topic is gone, it refuses the next message for it at once. */
static err_t refuse_deleted_topics(struct merge_batch *b, size_t n, bool *has_deleted)
{
  b->is_silent = false;
  for (size_t i = b->n_sent; i < b->n_sent + n && !b->is_silent; i++) {
    if (!is_topic_in_doubt(b, i))
      continue;
    pulse_beat(); /* topics may be many */
    err_code_t err = transaction_verify_topic(b->with.transaction, b->replies[i].topic, VERIFY_TIMEOUT_MS);
    b->is_silent = err == ERR_KAFKA_RETRY;
    *has_deleted |= err == ERR_KAFKA_TOPIC;
    if (err == ERR_KAFKA_TOPIC && count_failure(b, &b->replies[i]))
      TRY(refuse_topic(b, b->replies[i].topic, "the topic does not exist"));
  }
  return ERR_OK;
}

static err_t replace_if_refused(struct merge_batch *b, size_t i)
{
  struct merge_reply *reply = &b->replies[i];
  const struct transaction_message *message = &b->messages[i];

  if (!is_refused(b, message, reply))
    return ERR_OK;
  b->at_once = MERGE_BATCH_MAX; /* the cause is found */
  if (message->fate == SENDER_CLOSED)
    return refuse_topic(b, reply->topic, "no broker takes messages for its topic");
  if (message->fate == SENDER_AWAY)
    return refuse_topic(b, reply->topic, message->reason);
  if (reply->stage + 1 >= MERGE_STAGE_NOTHING)
    give_up(b, i);
  else
    TRY(replace(b, reply, message->reason));
  return ERR_OK;
}

static err_t replace_refused(struct merge_batch *b, size_t n)
{
  for (size_t i = b->n_sent + n; i-- > b->n_sent;)
    TRY(replace_if_refused(b, i));
  if (b->n == 0) /* nothing will be sent that would clear it */
    merge_batch_clear(b);
  return ERR_OK;
}

/* Find out which of n replies have made their group fail. If nothing says so, smaller groups will. */
static err_t find_cause(struct merge_batch *b, size_t n)
{
  bool has_deleted = false;

  TRY(refuse_deleted_topics(b, n, &has_deleted));
  if (has_deleted)
    b->at_once = MERGE_BATCH_MAX;
  else if (n > 1 && is_unclear(b, n))
    b->at_once = (n + 7) / 8;
  else
    TRY(replace_refused(b, n));
  return ERR_OK;
}

static void end_trace(struct merge_batch *b, struct merge_reply *reply)
{
  tracing_end(b->with.tracing, reply->traced, true);
  reply->traced = NULL;
}

/* Count the next n replies as sent. */
static void count_sent(struct merge_batch *b, size_t n)
{
  age_watch_look(&b->ages);
  for (size_t i = b->n_sent; i < b->n_sent + n; i++) {
    struct merge_reply *reply = &b->replies[i];
    int64_t age_ms = age_watch_age_ms(&b->ages, reply->asked_unix_ms);
    counters_add(reply->error ? &b->with.counters->errors[reply->error] : &b->with.counters->answers, 1);
    counters_add(&b->with.merge_counters->incomplete, reply->is_incomplete);
    if (!reply->error && age_ms >= 0)
      hist_add(&b->with.counters->answer_us, (uint64_t)age_ms * 1000);
    end_trace(b, reply);
  }
  b->n_sent += n;
}

/* Send a group: the answers of n replies, then their marks. Without transactions a mark follows its answer, because
 * alone it would lose it. */
static err_t send_messages(struct merge_batch *b, size_t n, struct partial_reader *r, const struct position *positions,
                           size_t n_positions)
{
  struct transaction *t = b->with.transaction;

  if (b->with.config->merge.is_exactly_once)
    return transaction_send(t, b->group, 2 * n, r, positions, n_positions);
  TRY(transaction_send(t, b->group, n, r, NULL, 0));
  return transaction_send(t, b->group + n, n, r, positions, n_positions);
}

/* List the positions below the parts of all replies from `first` on. */
static err_t hold_back(struct merge_batch *b, size_t first, const struct position *positions, size_t n,
                       struct position **out)
{
  TRY(region_array(&b->region, n, sizeof **out, out));
  for (size_t p = 0; p < n; p++) {
    (*out)[p] = positions[p];
    for (size_t i = first; i < b->n; i++) {
      if (b->replies[i].partition == positions[p].partition && b->replies[i].first_offset < (*out)[p].next)
        (*out)[p].next = b->replies[i].first_offset;
    }
  }
  return ERR_OK;
}

/* Send the next n replies. The positions do not pass the parts of those that wait. */
static err_t send_group(struct merge_batch *b, size_t n, struct partial_reader *r, const struct position *positions,
                        size_t n_positions)
{
  struct transaction_message *answers = b->messages + b->n_sent;
  struct region_mark mark = region_mark(&b->region);
  struct position *held;

  TRY(hold_back(b, b->n_sent + n, positions, n_positions, &held));
  memcpy(b->group, answers, n * sizeof *answers);
  memcpy(b->group + n, answers + b->n, n * sizeof *answers);
  err_code_t err = send_messages(b, n, r, held, n_positions);
  region_rewind(&b->region, mark);
  memcpy(answers, b->group, n * sizeof *answers);
  return err;
}

static err_t send_groups(struct merge_batch *b, struct partial_reader *r, const struct position *positions, size_t n)
{
  do {
    size_t n_replies = group_n(b);
    pulse_beat(); /* groups may be many */
    TRY(send_group(b, n_replies, r, positions, n));
    count_sent(b, n_replies);
  } while (b->n_sent < b->n);
  return ERR_OK;
}

err_t merge_batch_send(struct merge_batch *b, struct partial_reader *r, const struct position *positions, size_t n)
{
  int64_t began_ns = clock_now_ns();

  list_messages(b);
  err_code_t err = send_groups(b, r, positions, n);
  hist_add(&b->with.merge_counters->send_us, (uint64_t)((clock_now_ns() - began_ns) / CLOCK_NS_PER_US));
  if (err == ERR_OK)
    counters_add(&b->with.merge_counters->batches, 1);
  if (err != ERR_KAFKA_RETRY)
    return err;
  counters_add(&b->with.merge_counters->retries, 1);
  struct err_kept why;
  err_keep(err, &why);
  TRY(find_cause(b, group_n(b)));
  return err_give_back(&why);
}
