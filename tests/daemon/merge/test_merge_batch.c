/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a batch of answers on their way: what is sent again, what replaces it, and what is given up. The producer is
 * a stand-in. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/merge/merge_batch.h"
#include "ingest/wire/wire_partial.h"
#include "tests/support/assert_ok.h"

static char *reply_topics[] = { "mine.*" };
static struct config config;
static struct counters counters;
static struct merge_counters merge_counters;
static struct merge_batch batch;
static struct region scratch;
static struct open_joins *joins;
static enum sender_fate fate;         /* of all answers */
static const enum sender_fate *fates; /* of each answer; NULL: `fate` */
static bool has_topic;                /* the one that a query names */
static bool has_transactions;         /* the producer: it aborts all messages when one fails */

/* The messages that were sent last; without transactions the marks come alone. */
enum { SENT_MAX = 8 };
static struct sender_message sent[SENT_MAX];
static enum sender_fate former[SENT_MAX]; /* those that the messages had: what was delivered is not sent again */
static size_t n_sent, n_sends;
static size_t most;                    /* answers that a broker takes at once */
static const char *closed;             /* a topic that no transaction is opened for; NULL: there is none */
static bool lacks_topic;               /* for `closed` */
static bool are_marks_late;            /* beside it, they time out */
static const char *deleted;            /* a topic that brokers say is not there; NULL: there is none */
static bool is_silent;                 /* no broker says anything of topics */
static size_t n_verified;              /* topics that were asked for */
static char refused[64];               /* topic */
static int64_t committed[SENT_MAX];    /* the first position of each call that succeeded */
static size_t n_committed, next_offset;

/* ---- The producer ---- */

err_t transaction_send(struct transaction *t, struct transaction_message *messages, size_t n, struct partial_reader *r,
                       const struct position *positions, size_t n_positions)
{
  size_t n_answers = has_transactions ? n / 2 : n;

  (void)t;
  (void)r;
  n_sends++;
  n_sent = n;
  for (size_t i = 0; i < n_answers; i++) {
    if (n_answers <= most && (!closed || strcmp(messages[i].message.topic, closed) != 0))
      continue;
    for (i = 0; i < n; i++)
      messages[i].fate = n_answers > most && i < n_answers      ? SENDER_TOO_LARGE
                         : are_marks_late && i >= n_answers ? SENDER_AWAY
                                                            : SENDER_CLOSED;
    FAIL(ERR_KAFKA_RETRY, "a batch was refused");
  }
  for (size_t i = 0; i < n; i++) {
    if (i < SENT_MAX) {
      sent[i] = messages[i].message;
      former[i] = messages[i].fate;
    }
    messages[i].fate = fates ? fates[i] : i < n / 2 || !has_transactions ? fate : SENDER_CLOSED;
    messages[i].reason = "not wanted";
  }
  if (fates || fate != SENDER_DELIVERED)
    FAIL(ERR_KAFKA_RETRY, "a message was refused");
  if (n_positions && n_committed < SENT_MAX)
    committed[n_committed++] = positions[0].next;
  return ERR_OK;
}

bool transaction_has_topic(struct transaction *t, const char *topic, int timeout_ms)
{
  (void)t;
  (void)topic;
  (void)timeout_ms;
  return has_topic;
}

err_t transaction_verify_topic(struct transaction *t, const char *topic, int timeout_ms)
{
  (void)t;
  (void)timeout_ms;
  n_verified++;
  if (is_silent)
    FAIL(ERR_KAFKA_RETRY, "no broker answers");
  if (deleted && strcmp(topic, deleted) == 0)
    FAIL(ERR_KAFKA_TOPIC, "it is not there");
  return ERR_OK;
}

void transaction_refuse_topic(struct transaction *t, const char *topic)
{
  (void)t;
  snprintf(refused, sizeof refused, "%s", topic);
}

bool transaction_lacked_topic(const struct transaction *t)
{
  (void)t;
  return lacks_topic;
}

/* ---- The tests ---- */

static int begin(void **state)
{
  struct merge_batch_context context = { &config, &counters, &merge_counters, NULL, NULL };

  (void)state;
  config.catalogue.topic = config.catalogue.dead_letter_topic = config.query.topic = config.seen.topic = "";
  config.models.topic = config.models.files_topic = config.models.shadow_topic = "";
  config.query.answer_topic = "answers";
  config.query.partials_topic = "partials";
  config.query.reply_topics = (struct config_list){ reply_topics, 1 };
  config.merge.is_exactly_once = has_transactions = true;
  has_topic = true;
  fate = SENDER_DELIVERED;
  most = SIZE_MAX;
  closed = NULL;
  lacks_topic = true;
  are_marks_late = is_silent = false;
  deleted = NULL;
  n_verified = 0;
  *refused = '\0';
  n_committed = 0;
  next_offset = 10;
  fates = NULL;
  n_sends = 0;
  memset(&counters, 0, sizeof counters);
  memset(&merge_counters, 0, sizeof merge_counters);
  assert_ok(open_joins_open(1 << 30, CLOCK_NS_PER_S, &joins));
  assert_ok(merge_batch_init(&context, &batch));
  return 0;
}

static int end(void **state)
{
  (void)state;
  merge_batch_fini(&batch);
  open_joins_close(&joins);
  region_fini(&scratch);
  return 0;
}

/* Add the answer of a query to the batch, of which only this part has come. */
static void add_part(const char *key, const struct partial *partial, struct span encoded)
{
  AUTO(open_join_close) struct open_join *join = NULL;
  struct span head, value;
  enum open_joins_added added;

  assert_ok(wire_encode_partial(partial, &scratch, &head));
  assert_ok(wire_complete_partial(head, encoded, &scratch, &value));
  struct open_joins_part part = { span_of_str(key), value, 7, (int64_t)next_offset++, partial };
  assert_ok(open_joins_add(joins, &part, 0, &added));
  open_joins_note_time(joins, CLOCK_NS_PER_S, NULL, 0);
  join = open_joins_take_ready(joins);
  assert_non_null(join);
  assert_ok(merge_batch_add(&batch, join));
  region_reset(&scratch);
}

static void add_answer(const char *key, const struct partial *partial, const struct answer *answer)
{
  struct span encoded;

  assert_ok(wire_encode_answer(answer, WIRE_PROTOBUF, &scratch, &encoded));
  add_part(key, partial, encoded);
}

/* Add the answer of a layout with one shard. Its id has so many bytes. */
static void add(const char *key, size_t n_id)
{
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m") };
  char *id;

  assert_ok(region_array(&scratch, n_id, 1, &id));
  memset(id, 'i', n_id);
  struct answer answer = { .id = span_of(id, n_id), .space = span_of_str("books"), .generation = 1 };
  add_answer(key, &partial, &answer);
}

/* Add an answer of a query that names a topic for it. Return the topic where it goes. */
static const char *topic_of(const char *named)
{
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m"), .reply_topic = span_of_str(named) };
  struct answer answer = { .id = span_of_str("id"), .space = span_of_str("books"), .generation = 1 };

  add_answer("q", &partial, &answer);
  return batch.replies[batch.n - 1].topic;
}

static void assert_span(struct span span, const char *text)
{
  assert_true(span_equal(span, span_of_str(text)));
}

static struct answer decode(struct span value)
{
  struct answer out;

  assert_ok(wire_decode_answer(value, &scratch, &out));
  return out;
}

static void an_answer_has_the_key_the_format_and_the_trace_of_its_query(void **state)
{
  const struct span trace[] = { span_of_str("parent"), { 0 }, span_of_str("baggage") };
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m"), .has_key = true, .trace = trace, .n_trace = 3 };
  struct answer answer = { .id = span_of_str("id"), .space = span_of_str("books"), .generation = 3 };

  (void)state;
  partial.key = span_of_str("user");
  add_answer("q", &partial, &answer);
  partial.is_json = true;
  partial.has_key = false;
  add_answer("r", &partial, &answer);
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sent, 4);
  for (size_t i = 0; i < 2; i++) {
    assert_string_equal(sent[i].topic, "answers");
    assert_false(sent[i].has_partition);
    assert_int_equal(sent[i].n_headers, 3);
    assert_span(sent[i].headers[0].value, i ? "application/json" : "application/x-protobuf");
    assert_span(sent[i].headers[1].value, "parent");
    assert_string_equal(sent[i].headers[2].name, "baggage");
  }
  assert_true(sent[0].has_key);
  assert_span(sent[0].key, "user");
  assert_span(decode(sent[0].value).id, "id");
  assert_int_equal(decode(sent[0].value).generation, 3);
  assert_false(sent[1].has_key);
  assert_int_equal(sent[1].value.p[0], '{');
}

static void the_trace_of_an_answer_that_cannot_be_written_has_its_error(void **state)
{
  const struct span trace[] = { span_of_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") };
  const struct tracing_config with = { .endpoint = "http://127.0.0.1:1/", .source.topic = "", .counters = &counters };
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m"), .is_json = true, .trace = trace, .n_trace = 1 };
  struct hit hit = { .key = span_of_str("book"), .similarity = NAN }; /* JSON has no such number */
  struct answer answer = {
    .id = span_of_str("id"), .space = span_of_str("books"), .generation = 3, .hits = &hit, .n_hits = 1, .is_boosted = true,
  };

  (void)state;
  assert_ok(tracing_open(&with, &batch.with.tracing));
  add_answer("q", &partial, &answer);
  assert_int_equal(batch.replies[0].error, ANSWER_INTERNAL);
  assert_non_null(batch.replies[0].traced);
  assert_string_equal(batch.replies[0].traced->error, "INTERNAL");
  merge_batch_clear(&batch);
  tracing_close(&batch.with.tracing);
}

/* A merge that begins again reads the marks: they say which queries it must not answer a second time. */
static void the_mark_of_a_query_is_where_its_parts_are(void **state)
{
  struct partial mark;

  (void)state;
  add("a", 10);
  add("b", 10);
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sent, 4);
  for (size_t i = 0; i < 2; i++) {
    const struct sender_message *m = &sent[2 + i];
    assert_string_equal(m->topic, "partials");
    assert_true(m->has_partition);
    assert_int_equal(m->partition, 7);
    assert_true(m->has_key);
    assert_span(m->key, i ? "b" : "a");
    assert_true(query_digest_equal(batch.replies[i].digest, query_digest_of(m->key)));
    assert_ok(wire_decode_partial(m->value, &scratch, &mark));
    assert_int_equal(mark.kind, PARTIAL_ANSWERED);
  }
}

/* A mark without its answer would lose the answer. */
static void without_transactions_the_marks_are_sent_once_the_answers_are_delivered(void **state)
{
  (void)state;
  config.merge.is_exactly_once = has_transactions = false;
  add("a", 10);
  fate = SENDER_UNSURE;
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(n_sends, 1);
  assert_string_equal(sent[0].topic, "answers");
  fate = SENDER_DELIVERED;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sends, 3);
  assert_int_equal(n_sent, 1);
  assert_string_equal(sent[0].topic, "partials");
}

static void a_topic_that_the_query_names_is_used_if_it_is_allowed_and_there(void **state)
{
  (void)state;
  assert_string_equal(topic_of(""), "answers");
  assert_string_equal(topic_of("answers"), "answers");
  assert_false(batch.replies[batch.n - 1].is_own_topic); /* it waits for that one */
  assert_string_equal(topic_of("mine.a"), "mine.a");
  assert_true(batch.replies[batch.n - 1].is_own_topic);
  assert_string_equal(topic_of("others.a"), "answers");
  has_topic = false;
  assert_string_equal(topic_of("mine.a"), "answers");
  assert_false(batch.replies[batch.n - 1].is_own_topic);
}

static void an_answer_that_its_own_topic_does_not_take_goes_to_the_configured_one(void **state)
{
  (void)state;
  topic_of("mine.a");
  fate = SENDER_AWAY;
  for (int i = 0; i < 3; i++) {
    assert_string_equal(batch.replies[0].topic, "mine.a");
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  }
  for (int i = 0; i < 3; i++) /* this one is waited for */
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 1);
  fate = SENDER_DELIVERED;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_string_equal(sent[0].topic, "answers");
  struct answer answer = decode(sent[0].value);
  assert_int_equal(answer.error, ANSWER_INTERNAL);
  assert_span(answer.id, "id");
  assert_span(answer.space, "books");
  assert_non_null(strstr(answer.error_message, "the query's reply_topic: not wanted"));
}

/* A broker refuses a batch of messages as too large, and says so of each. Alone they are small enough. */
static void answers_that_are_too_large_together_are_sent_apart(void **state)
{
  static const int64_t due[] = { 11, 12, 13, 14, 100 };
  const struct position position = { 7, 100 };

  (void)state;
  for (size_t i = 0; i < 5; i++)
    add((const char *[]){ "a", "b", "c", "d", "e" }[i], 10);
  most = 1;
  assert_int_equal(merge_batch_send(&batch, NULL, &position, 1), ERR_KAFKA_RETRY);
  assert_ok(merge_batch_send(&batch, NULL, &position, 1));
  assert_int_equal(batch.n, 5);
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(batch.replies[i].error, ANSWER_OK);
  assert_int_equal(n_committed, 5);
  for (size_t i = 0; i < 5; i++) /* not beyond the parts of what is not sent */
    assert_int_equal(committed[i], due[i]);
  merge_batch_clear(&batch);
  most = SIZE_MAX;
  n_sends = 0;
  add("f", 10);
  add("g", 10);
  assert_ok(merge_batch_send(&batch, NULL, &position, 1));
  assert_int_equal(n_sends, 1);
}

/* A transaction is aborted, and no message is said to be the cause. */
static void one_topic_that_nobody_may_write_stops_no_other_answer(void **state)
{
  const struct position position = { 7, 100 };

  (void)state;
  add("a", 10);
  topic_of("mine.a");
  add("b", 10);
  closed = "mine.a";
  assert_int_equal(merge_batch_send(&batch, NULL, &position, 1), ERR_KAFKA_RETRY);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(merge_batch_send(&batch, NULL, &position, 1), ERR_KAFKA_RETRY);
    assert_int_equal(batch.n_sent, 1);
  }
  assert_ok(merge_batch_send(&batch, NULL, &position, 1));
  assert_int_equal(batch.n, 3);
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
  assert_int_equal(batch.replies[1].error, ANSWER_INTERNAL);
  assert_string_equal(batch.replies[1].topic, "answers");
  assert_int_equal(batch.replies[2].error, ANSWER_OK);
  assert_string_equal(refused, "mine.a");
  assert_int_equal(committed[n_committed - 1], 100);
}

/* While a transaction waits for a topic, its other messages may time out first. */
static void a_mark_that_times_out_is_not_the_cause(void **state)
{
  are_marks_late = true;
  one_topic_that_nobody_may_write_stops_no_other_answer(state);
}

/* It is not waited for until its answer happens to be the message that times out. */
static void a_topic_that_was_deleted_is_found_whatever_times_out(void **state)
{
  (void)state;
  add("a", 10);
  for (int i = 0; i < 3; i++)
    topic_of(i == 1 ? "mine.b" : "mine.a");
  closed = deleted = "mine.a";
  are_marks_late = true;
  lacks_topic = false;
  for (size_t i = 1; i <= 3; i++) {
    assert_string_equal(refused, "");
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(n_verified, 2 * i); /* each topic once */
  }
  assert_string_equal(refused, "mine.a");
  n_sends = 0;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sends, 1);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(batch.replies[i].error, i % 2 ? ANSWER_INTERNAL : ANSWER_OK);
    assert_string_equal(batch.replies[i].topic, i == 2 ? "mine.b" : "answers");
  }
}

static void a_topic_that_one_broker_does_not_know_yet_is_waited_for(void **state)
{
  (void)state;
  topic_of("mine.a");
  closed = deleted = "mine.a";
  for (int i = 0; i < 2; i++)
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  closed = deleted = NULL;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_string_equal(sent[0].topic, "mine.a");
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
}

/* An outage of the brokers says nothing of a topic, however long it takes. */
static void brokers_that_are_away_are_not_taken_for_a_topic_that_is(void **state)
{
  static const enum sender_fate failures[] = { SENDER_AWAY, SENDER_CLOSED };

  (void)state;
  topic_of("mine.a");
  topic_of("mine.b");
  is_silent = true;
  for (int i = 0; i < 2 * SENDER_UNSURE_MAX; i++) {
    fate = failures[i % 2];
    n_verified = 0;
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(n_verified, 1); /* each look takes time */
  }
  fate = SENDER_DELIVERED;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(batch.replies[i].error, ANSWER_OK);
    assert_true(batch.replies[i].is_own_topic);
  }
}

/* Verify that the answer is sent when its topic is open again, however long that takes. */
static void assert_waited_out(void)
{
  lacks_topic = false;
  for (int i = 0; i < 2 * SENDER_UNSURE_MAX; i++)
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  closed = NULL;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
}

/* The configured topic is waited for. */
static void with_late_marks_an_answer_waits_for_the_configured_topic(void **state)
{
  (void)state;
  add("a", 10);
  closed = "answers";
  are_marks_late = true;
  assert_waited_out();
}

/* One answer finds the cause for all that go to the same topic. */
static void answers_for_a_topic_that_nobody_may_write_are_replaced_together(void **state)
{
  (void)state;
  for (int i = 0; i < 5; i++)
    topic_of("mine.a");
  closed = "mine.a";
  for (int i = 0; i < 4; i++)
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  n_sends = 0;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sends, 1);
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(batch.replies[i].error, ANSWER_INTERNAL);
}

/* A group that may not commit, say, says nothing of the topic. */
static void an_abort_that_no_topic_has_caused_is_waited_out(void **state)
{
  (void)state;
  topic_of("mine.a");
  closed = "mine.a";
  assert_waited_out();
  assert_string_equal(sent[0].topic, "mine.a");
}

/* One that is too large is found at once, and the others of its batch are sent together. */
static void an_answer_that_is_too_large_by_itself_is_replaced_at_once(void **state)
{
  static const enum sender_fate one_is[] = { SENDER_CLOSED, SENDER_TOO_LARGE, SENDER_CLOSED,
                                             SENDER_CLOSED, SENDER_CLOSED,    SENDER_CLOSED };

  (void)state;
  add("a", 10);
  add("b", 10);
  add("c", 10);
  fates = one_is;
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  fates = NULL;
  n_sends = 0;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(n_sends, 1);
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
  assert_int_equal(batch.replies[1].error, ANSWER_INTERNAL);
  assert_int_equal(batch.replies[2].error, ANSWER_OK);
}

/* The configured topic has no other in its place: the answer waits for it. */
static void an_answer_waits_for_a_configured_topic_that_is_away(void **state)
{
  (void)state;
  fate = SENDER_AWAY;
  add("a", 10);
  for (int i = 0; i < 2 * SENDER_UNSURE_MAX; i++)
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 1);
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
}

static void an_answer_that_may_be_refused_is_tried_often(void **state)
{
  (void)state;
  fate = SENDER_UNSURE;
  add("a", 10);
  for (int i = 1; i < SENDER_UNSURE_MAX; i++)
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.replies[0].error, ANSWER_OK);
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.replies[0].error, ANSWER_INTERNAL);
}

static void an_answer_of_a_shard_that_cannot_be_read_is_an_error(void **state)
{
  struct partial partial = { .shard = 1, .n_shards = 2, .k = 1, .model = span_of_str("m") };

  (void)state;
  add_part("q", &partial, span_of_str("\xff\xff\xff"));
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  struct answer answer = decode(sent[0].value);
  assert_int_equal(answer.error, ANSWER_INTERNAL);
  assert_non_null(strstr(answer.error_message, "shard 1 of 2: "));
}

static void what_is_sent_is_counted_once(void **state)
{
  struct answer answer = { .id = span_of_str("id"), .space = span_of_str("books"), .generation = 1 };
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m"), .allow_partial = true };
  struct hist_powers ages_us;

  (void)state;
  partial.asked_unix_ms = clock_unix_ms() - 5000;
  add_answer("whole", &partial, &answer);
  partial.n_shards = 2;
  add_answer("incomplete", &partial, &answer);
  partial.allow_partial = false;
  add_answer("partial", &partial, &answer);
  fate = SENDER_AWAY;
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(counters_get(&counters.answers), 0);
  fate = SENDER_DELIVERED;
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
  assert_int_equal(counters_get(&counters.answers), 2);
  assert_int_equal(counters_get(&counters.errors[ANSWER_PARTIAL]), 1);
  assert_int_equal(counters_get(&merge_counters.incomplete), 1);
  assert_int_equal(counters_get(&merge_counters.batches), 1);
  assert_int_equal(counters_get(&merge_counters.retries), 1);
  hist_powers_get(&counters.answer_us, &ages_us);
  assert_int_equal(ages_us.n, 2);
  assert_int_equal(ages_us.below[22], 0); /* 4.2 s */
}

static void a_batch_takes_its_maximum_of_answers(void **state)
{
  (void)state;
  for (size_t i = 0; i < MERGE_BATCH_MAX; i++) {
    assert_true(merge_batch_has_room(&batch));
    add("a", 1);
  }
  assert_false(merge_batch_has_room(&batch));
  merge_batch_clear(&batch);
  assert_true(merge_batch_has_room(&batch));
  add("a", MERGE_BATCH_BYTES);
  assert_false(merge_batch_has_room(&batch));
}

static void a_refused_answer_becomes_an_error_and_is_then_given_up(void **state)
{
  (void)state;
  fate = SENDER_REFUSED;
  add("a", 10);
  add("b", 10);
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 2);
  assert_int_equal(batch.replies[0].error, ANSWER_INTERNAL);
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 0);
  assert_int_equal(counters_get(&counters.undeliverable), 2);
}

/* What was delivered is not sent again, and the others are. */
static void an_answer_that_is_given_up_leaves_the_others_with_their_fates(void **state)
{
  static const enum sender_fate in[] = { SENDER_REFUSED, SENDER_AWAY, SENDER_DELIVERED };

  (void)state;
  config.merge.is_exactly_once = has_transactions = false;
  add("a", 1);
  add("b", 2);
  add("c", 3);
  batch.replies[0].stage = MERGE_STAGE_ERROR;
  fates = in;
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 2);
  for (size_t i = 0; i < 2; i++) {
    assert_span(batch.replies[i].part_key, i ? "c" : "b");
    assert_int_equal(batch.messages[i].fate, in[1 + i]);
  }
}

/* Otherwise it would pass for delivered before it is sent. */
static void the_next_batch_has_none_of_the_fates_of_the_one_before(void **state)
{
  (void)state;
  for (int round = 0; round < 2; round++) {
    add("a", 1);
    assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
    assert_int_equal(former[0], SENDER_QUEUED);
    assert_int_equal(former[1], SENDER_QUEUED);
    merge_batch_clear(&batch);
  }
}

static void a_batch_that_was_given_up_leaves_room_for_the_next(void **state)
{
  (void)state;
  fate = SENDER_REFUSED;
  for (size_t n_bytes = 0; n_bytes < 2 * MERGE_BATCH_BYTES; n_bytes += 1 << 20) {
    assert_true(merge_batch_has_room(&batch));
    add("a", 1 << 20);
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(batch.n, 0);
  }
  fate = SENDER_DELIVERED;
  add("b", 10);
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(an_answer_has_the_key_the_format_and_the_trace_of_its_query, begin, end),
    cmocka_unit_test_setup_teardown(the_trace_of_an_answer_that_cannot_be_written_has_its_error, begin, end),
    cmocka_unit_test_setup_teardown(the_mark_of_a_query_is_where_its_parts_are, begin, end),
    cmocka_unit_test_setup_teardown(without_transactions_the_marks_are_sent_once_the_answers_are_delivered, begin, end),
    cmocka_unit_test_setup_teardown(a_topic_that_the_query_names_is_used_if_it_is_allowed_and_there, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_that_its_own_topic_does_not_take_goes_to_the_configured_one, begin, end),
    cmocka_unit_test_setup_teardown(answers_that_are_too_large_together_are_sent_apart, begin, end),
    cmocka_unit_test_setup_teardown(one_topic_that_nobody_may_write_stops_no_other_answer, begin, end),
    cmocka_unit_test_setup_teardown(a_mark_that_times_out_is_not_the_cause, begin, end),
    cmocka_unit_test_setup_teardown(a_topic_that_was_deleted_is_found_whatever_times_out, begin, end),
    cmocka_unit_test_setup_teardown(a_topic_that_one_broker_does_not_know_yet_is_waited_for, begin, end),
    cmocka_unit_test_setup_teardown(brokers_that_are_away_are_not_taken_for_a_topic_that_is, begin, end),
    cmocka_unit_test_setup_teardown(with_late_marks_an_answer_waits_for_the_configured_topic, begin, end),
    cmocka_unit_test_setup_teardown(answers_for_a_topic_that_nobody_may_write_are_replaced_together, begin, end),
    cmocka_unit_test_setup_teardown(an_abort_that_no_topic_has_caused_is_waited_out, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_that_is_too_large_by_itself_is_replaced_at_once, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_waits_for_a_configured_topic_that_is_away, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_that_may_be_refused_is_tried_often, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_of_a_shard_that_cannot_be_read_is_an_error, begin, end),
    cmocka_unit_test_setup_teardown(what_is_sent_is_counted_once, begin, end),
    cmocka_unit_test_setup_teardown(a_batch_takes_its_maximum_of_answers, begin, end),
    cmocka_unit_test_setup_teardown(a_refused_answer_becomes_an_error_and_is_then_given_up, begin, end),
    cmocka_unit_test_setup_teardown(an_answer_that_is_given_up_leaves_the_others_with_their_fates, begin, end),
    cmocka_unit_test_setup_teardown(the_next_batch_has_none_of_the_fates_of_the_one_before, begin, end),
    cmocka_unit_test_setup_teardown(a_batch_that_was_given_up_leaves_room_for_the_next, begin, end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
