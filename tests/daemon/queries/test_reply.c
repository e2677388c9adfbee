/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of replies: what arrives in the answer topic and in topics that queries name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/queries/reply.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"

static struct kafka_fixture kafka;
static struct counters counters;
static struct offset_tracker *tracker;
static struct delivery *delivery;
static struct reply_context with;
static char *patterns[] = { (char *)"min?", (char *)"team.*" };
static const struct config config = {
  .catalogue = { .topic = (char *)"items", .dead_letter_topic = (char *)"team.letters" },
  .seen = { .topic = (char *)"seen" },
  .models = { .topic = (char *)"team.models",
              .files_topic = (char *)"team.files",
              .shadow_topic = (char *)"team.comparisons" },
  .query = { .topic = (char *)"queries",
             .answer_topic = (char *)"answers",
             .partials_topic = (char *)"partials",
             .reply_topics = { patterns, 2 } },
};
static struct region scratch;

static int open_all(void **state)
{
  (void)state;
  kafka_fixture_init(&kafka);
  struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  assert_ok(embedded_broker_create_topic(kafka.broker, "answers", 1));
  assert_ok(embedded_broker_create_topic(kafka.broker, "mine", 1));
  assert_ok(offset_tracker_open(&tracker));
  struct delivery_config delivery_config = {
    .layers = &layers,
    .query_topic = "queries",
    .answer_topic = "answers",
    .dead_letter_topic = "letters",
    .has_reply_topics = true,
    .reply_timeout_ms = 5000,
    .counters = &counters,
    .tracker = tracker,
  };
  assert_ok(delivery_open(&delivery_config, &delivery));
  with = (struct reply_context){ .delivery = delivery, .counters = &counters, .config = &config };
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  delivery_close(&delivery);
  offset_tracker_close(&tracker);
  kafka_fixture_fini(&kafka);
  region_fini(&scratch);
  return 0;
}

static uint32_t new_ticket(void)
{
  static int64_t offset;
  uint32_t ticket;

  assert_ok(offset_tracker_begin(tracker, 0, offset++, &ticket, NULL));
  return ticket;
}

static struct pending_query query_of(const char *id)
{
  return (struct pending_query){ .query = { .id = span_of_str(id), .space = span_of_str("books") },
                                 .ticket = new_ticket(),
                                 .format = WIRE_JSON,
                                 .has_key = true,
                                 .key = span_of_str("client") };
}

/* Return the reply with this id, parsed. It must come exactly once. */
static json_t *read_reply(const char *topic, const char *id)
{
  struct kafka_tap tap;
  json_t *found = NULL;
  rd_kafka_message_t *m;

  kafka_tap_init(&tap, &kafka, topic, 1);
  while ((m = kafka_tap_next(&tap, found ? 100 : 3000))) {
    json_t *reply = json_loadb(m->payload, m->len, 0, NULL);
    assert_non_null(reply);
    bool is_it = strcmp(json_string_value(json_object_get(reply, "id")), id) == 0;
    if (is_it) {
      assert_null(found);
      found = reply;
      assert_true(span_equal(span_of(m->key, m->key_len), span_of_str("client")));
    } else {
      json_decref(reply);
    }
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  if (!found)
    fail_msg("no reply to %s has come", id);
  return found;
}

static const char *error_code(json_t *reply)
{
  json_t *code = json_object_get(json_object_get(reply, "error"), "code");

  return code ? json_string_value(code) : "none";
}

static void an_answer_goes_to_the_topic_that_its_query_names(void **state)
{
  struct pending_query query = query_of("a1");
  struct hit hit = { .key = span_of_str("item"), .score = 0.5f };
  struct answer answer = { .hits = &hit, .n_hits = 1, .method = { .name = "exact" } };

  (void)state;
  reply_answer(&with, &query, &answer, &scratch);
  query.query.id = span_of_str("a2");
  query.ticket = new_ticket();
  query.query.reply_topic = span_of("mine and more", 4);
  reply_answer(&with, &query, &answer, &scratch);
  json_t *first = read_reply("answers", "a1"), *second = read_reply("mine", "a2");
  assert_int_equal(json_array_size(json_object_get(first, "hits")), 1);
  assert_string_equal(error_code(first), "none");
  assert_string_equal(error_code(second), "none");
  json_decref(first);
  json_decref(second);
  assert_int_equal(counters_get(&counters.answers), 2);
}

/* Otherwise a client could make the daemon write to any topic, and a crafted reply would be an item. */
static void a_topic_that_no_setting_allows_gets_no_reply(void **state)
{
  static const struct {
    const char *topic;
    bool is_allowed;
  } rows[] = {
    { "", true },
    { "answers", true },
    { "mine", true },
    { "min", false },
    { "miners", false },
    { "team.7", true },
    { "teams", false },
    { "team.", true },
    { "items", false },
    { "queries", false },
    { "team.letters", false },
    { "team.models", false },
    { "team.files", false },
    { "team.comparisons", false },
    { "other", false },
  };
  struct pending_query query = query_of("u1");

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_int_equal(reply_verify_topic(&config, span_of_str(rows[i].topic)) == ERR_OK, rows[i].is_allowed);
  assert_fails(reply_verify_topic(&config, span_of_str("other")), ERR_QUERY, "query.reply_topics");
  query.query.reply_topic = span_of_str("other"); /* the error of a query that was not checked yet, say */
  reply_error(&with, &query, ANSWER_BAD_QUERY, "k is 0", &scratch);
  json_t *reply = read_reply("answers", "u1");
  assert_string_equal(error_code(reply), "BAD_QUERY");
  json_decref(reply);
}

static void an_error_is_a_reply_too(void **state)
{
  struct pending_query query = query_of("e1");

  (void)state;
  reply_error(&with, &query, ANSWER_BAD_QUERY, "k is 0", &scratch);
  json_t *reply = read_reply("answers", "e1");
  assert_string_equal(error_code(reply), "BAD_QUERY");
  json_decref(reply);
}

/* A query without a reply would be read again after each restart, and would hold back all later offsets. */
static void an_answer_that_cannot_be_written_becomes_an_error(void **state)
{
  struct pending_query query = query_of("i1");
  struct hit hits[2] = { { .key = span_of_str("item"), .score = 0.5f },
                         { .key = span_of_str("other"), .score = INFINITY } };
  struct answer answer = { .hits = hits, .n_hits = 2, .method = { .name = "exact" } };

  (void)state;
  reply_answer(&with, &query, &answer, &scratch);
  json_t *reply = read_reply("answers", "i1");
  assert_string_equal(error_code(reply), "INTERNAL");
  json_decref(reply);
}

static void an_answer_too_large_to_be_sent_becomes_an_error(void **state)
{
  enum { HITS = 200000 };
  struct pending_query query = query_of("l1");
  struct hit *hits = calloc(HITS, sizeof *hits);
  struct answer answer = { .hits = hits, .n_hits = HITS, .method = { .name = "exact" } };

  (void)state;
  for (size_t i = 0; i < HITS; i++)
    hits[i] = (struct hit){ .key = span_of_str("a key of a usual length"), .score = 0.5f };
  reply_answer(&with, &query, &answer, &scratch);
  json_t *reply = read_reply("answers", "l1");
  assert_string_equal(error_code(reply), "INTERNAL");
  json_decref(reply);
  free(hits);
}

static void codes_that_reject_a_query_have_an_error_of_their_own(void **state)
{
  (void)state;
  assert_int_equal(reply_error_of(ERR_SPACE), ANSWER_UNKNOWN_SPACE);
  assert_int_equal(reply_error_of(ERR_METHOD), ANSWER_UNKNOWN_METHOD);
  assert_int_equal(reply_error_of(ERR_QUERY), ANSWER_BAD_QUERY);
  assert_int_equal(reply_error_of(ERR_MEMORY), ANSWER_INTERNAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_goes_to_the_topic_that_its_query_names),
    cmocka_unit_test(a_topic_that_no_setting_allows_gets_no_reply),
    cmocka_unit_test(an_error_is_a_reply_too),
    cmocka_unit_test(an_answer_that_cannot_be_written_becomes_an_error),
    cmocka_unit_test(an_answer_too_large_to_be_sent_becomes_an_error),
    cmocka_unit_test(codes_that_reject_a_query_have_an_error_of_their_own),
  };

  return cmocka_run_group_tests(tests, open_all, close_all);
}
