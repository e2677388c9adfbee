/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that wait for a worker while the generation that they were checked for changes, and what is counted of those
 * that have a filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "daemon/queries/query_queue.h"
#include "daemon/queries/search_worker.h"
#include "engine/engine_spaces.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

static struct kafka_fixture kafka;
static struct counters counters;
static struct offset_tracker *tracker;
static struct delivery *delivery;
static struct reply_context reply;
static const struct config config = { .catalogue = { .topic = (char *)"items", .dead_letter_topic = (char *)"letters" },
                                      .seen = { .topic = (char *)"" },
                                      .query = { .topic = (char *)"queries", .answer_topic = (char *)"answers" } };
static struct alarm alarm_;

static struct temp_dir dir;
static char path[PATH_MAX], wider[PATH_MAX];
static struct engine *engine;
static struct query_queue *queue;
static struct search_counters *search_counters;

static void open_delivery(void)
{
  kafka_fixture_init(&kafka);
  struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  struct delivery_config delivery_config = { .layers = &layers,
                                             .query_topic = "queries",
                                             .answer_topic = "answers",
                                             .dead_letter_topic = "letters",
                                             .reply_timeout_ms = 5000,
                                             .counters = &counters,
                                             .tracker = tracker };

  assert_ok(embedded_broker_create_topic(kafka.broker, "answers", 1));
  assert_ok(delivery_open(&delivery_config, &delivery));
  reply = (struct reply_context){ .delivery = delivery, .counters = &counters, .config = &config };
}

static bool is_there(void *context, size_t number)
{
  (void)context;
  (void)number;
  return true;
}

static void open_engine(void)
{
  struct engine_space space = { .name = "v", .model_path = path };
  static const struct attribute year = { { (const uint8_t *)"year", 4 }, ATTRIBUTE_INTEGER };
  struct engine_config engine_config = {
    .spaces = &space, .n_spaces = 1, .max_items = 10, .max_k = 10, .max_batch = 4, .attributes = { &year, 1 }
  };

  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  snprintf(wider, sizeof wider, "%s/wider.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  vector_file_write_plain(wider, "dot", 2);
  assert_ok(engine_open(&engine_config, &engine));
}

static int open_all(void **state)
{
  static const uint32_t weight = 1;
  struct fair_queue_config queue_config = {
    .weights = &weight, .n_spaces = 1, .n_workers = 1, .n_queries = 16, .max_batch = 4, .batch_time_ns = CLOCK_NS_PER_MS
  };

  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(alarm_init(&alarm_));
  open_delivery();
  open_engine();
  assert_ok(query_queue_open(&queue_config, 1 << 20, &queue));
  assert_ok(search_counters_open(8, is_there, NULL, &search_counters));
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  search_counters_close(&search_counters);
  query_queue_close(&queue);
  engine_close(&engine);
  temp_dir_fini(&dir);
  delivery_close(&delivery);
  alarm_fini(&alarm_);
  offset_tracker_close(&tracker);
  kafka_fixture_fini(&kafka);
  return 0;
}

/* Check a query and let it wait for a worker. */
static void ask_filtered(const char *id, const char *space, const char *filter)
{
  static const float one = 1.0f;
  static int64_t offset;
  struct pending_query *query = query_queue_take_query(queue);

  assert_non_null(query);
  query->query = (struct query){ .id = span_of_str(id),
                                 .space = span_of_str(space),
                                 .k = 5,
                                 .vector = { &one, 1 },
                                 .filter = span_of_str(filter) };
  query->format = WIRE_JSON;
  query->received_ns = clock_now_ns();
  query->deadline_ns = PENDING_NO_DEADLINE;
  assert_ok(offset_tracker_begin(tracker, 0, offset++, &query->ticket, NULL));
  assert_ok(engine_check_query(engine, &query->query, &query->number, &query->method));
  assert_ok(engine_check_filter(engine, &query->query, &query->region));
  query_queue_push(queue, query);
}

static void ask(const char *id, const char *space)
{
  ask_filtered(id, space, "");
}

static void add(uint32_t generation, const char *model_path)
{
  const struct engine_space space = { .name = "v", .model_path = model_path, .generation = generation };
  struct engine_model *model;

  assert_ok(engine_load_model(&space, &model));
  assert_ok(engine_add_space(engine, &model));
}

/* Search all that waits. */
static void run_workers(void)
{
  struct search_context context = {
    .engine = engine,
    .queue = queue,
    .reply = &reply,
    .search_counters = search_counters,
    .alarm = &alarm_,
    .max_batch = 4,
  };
  struct search_workers *workers;

  query_queue_end(queue, clock_now_ns() + 60 * CLOCK_NS_PER_S);
  assert_ok(search_workers_open(1, &context, &workers));
  search_workers_close(&workers);
}

/* The answers by their ids: an object. Each comes once. */
static json_t *read_answers(size_t n)
{
  struct kafka_tap tap;
  json_t *all = json_object();
  rd_kafka_message_t *m;

  kafka_tap_init(&tap, &kafka, "answers", 1);
  while ((m = kafka_tap_next(&tap, json_object_size(all) == n ? 100 : 10000))) {
    json_t *answer = json_loadb(m->payload, m->len, 0, NULL);
    const char *id = json_string_value(json_object_get(answer, "id"));
    assert_null(json_object_get(all, id));
    json_object_set_new(all, id, answer);
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  assert_int_equal(json_object_size(all), n);
  return all;
}

static void assert_generation(json_t *answers, const char *id, int generation, const char *hit)
{
  json_t *answer = json_object_get(answers, id);
  json_t *hits = json_object_get(answer, "hits");

  assert_int_equal(json_integer_value(json_object_get(answer, "generation")), generation);
  assert_string_equal(json_string_value(json_object_get(answer, "space")), "v");
  assert_string_equal(json_string_value(json_object_get(json_array_get(hits, 0), "key")), hit);
}

static void assert_error(json_t *answers, const char *id, const char *code, const char *message)
{
  json_t *error = json_object_get(json_object_get(answers, id), "error");

  assert_string_equal(json_string_value(json_object_get(error, "code")), code);
  if (!strstr(json_string_value(json_object_get(error, "message")), message))
    fail_msg("%s does not say %s", json_string_value(json_object_get(error, "message")), message);
}

static void waiting_queries_get_the_generation_that_is_current_when_they_are_searched(void **state)
{
  static const float one = 1.0f;

  (void)state;
  fixture_put_vector(engine, span_of_str("first"), "v", &one, 1);
  add(2, path);
  fixture_put_vector(engine, span_of_str("second"), "v@2", &one, 1);
  add(3, path);
  ask("plain", "v");
  ask("pinned", "v@1");
  ask("removed", "v@3");
  assert_ok(engine_set_current(engine, span_of_str("v"), 2));
  assert_ok(engine_remove_space(engine, span_of_str("v"), 3));
  run_workers();
  json_t *answers = read_answers(3);
  assert_generation(answers, "plain", 2, "second");
  assert_generation(answers, "pinned", 1, "first");
  assert_error(answers, "removed", "UNKNOWN_SPACE", "space \"v\" has no generation 3; it has 1, 2 (current)");
  json_decref(answers);
}

static void a_waiting_query_that_does_not_suit_the_new_generation_is_refused(void **state)
{
  (void)state;
  add(2, wider);
  ask("short", "v");
  assert_ok(engine_set_current(engine, span_of_str("v"), 2));
  assert_ok(engine_remove_space(engine, span_of_str("v"), 1));
  run_workers();
  json_t *answers = read_answers(1);
  assert_error(answers, "short", "BAD_QUERY", "vector");
  json_decref(answers);
}

static void put_film(const char *key, int64_t year)
{
  static const float one = 1.0f;
  struct part part = { .space = span_of_str("v"), .vector = { &one, 1 } };
  struct attribute_value value = { span_of_str("year"), { .kind = VALUE_INTEGER, .integer = year } };
  struct item_change change = {
    .key = span_of_str(key), .parts = &part, .n_parts = 1, .attributes = &value, .n_attributes = 1
  };

  fixture_apply(engine, &change, 1);
}

static void queries_with_a_filter_are_counted_by_plan(void **state)
{
  (void)state;
  put_film("alien", 1979);
  put_film("heat", 1995);
  put_film("ran", 1985);
  ask("plain", "v");
  ask_filtered("two", "v", "year < 1990");
  ask_filtered("one", "v", "year = 1995");
  ask_filtered("three", "v", "has(year)");
  run_workers();
  json_decref(read_answers(4));
  assert_int_equal(counters_get(&counters.filtered), 3);
  assert_int_equal(counters_get(&counters.filter_plans[QUERY_PLAN_MASKED]), 2);
  assert_int_equal(counters_get(&counters.filter_plans[QUERY_PLAN_ALL]), 1);
  assert_int_equal(counters_sum(counters.filter_plans, QUERY_PLANS), 3);
  assert_int_equal(counters_get(&counters.filtered_items), 9);
  assert_int_equal(counters_get(&counters.filtered_admitted), 6);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(waiting_queries_get_the_generation_that_is_current_when_they_are_searched, open_all,
                                    close_all),
    cmocka_unit_test_setup_teardown(a_waiting_query_that_does_not_suit_the_new_generation_is_refused, open_all,
                                    close_all),
    cmocka_unit_test_setup_teardown(queries_with_a_filter_are_counted_by_plan, open_all, close_all),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
