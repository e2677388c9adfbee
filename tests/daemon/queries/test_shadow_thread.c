/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that are compared in two generations: what comes of them, and which are not compared. */
#include "daemon/queries/shadow_thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "daemon/queries/shadow_search.h"
#include "engine/engine_spaces.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/log_watch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_property.h"
#include "tests/support/vector_file.h"

enum { PATIENCE_S = 60 };

static struct kafka_fixture kafka;
static struct config_space space = { .name = (char *)"v" };
static struct config config = { .spaces = &space, .n_spaces = 1 };
static struct kafka_setup setup = { .config = &config };
static struct counters counters;
static struct temp_dir dir;
static char plain[PATH_MAX], wider[PATH_MAX];
static struct engine *engine;
static struct query_queue *queue;
static struct shadow_board board;
static struct shadow_thread *shadows;
static int64_t offset;

static void open_engine(void)
{
  struct engine_space first = { .name = "v", .model_path = plain };
  struct engine_config engine_config = {
    .spaces = &first, .n_spaces = 1, .max_items = 10, .max_k = 10, .max_batch = 4
  };

  temp_dir_init(&dir);
  snprintf(plain, sizeof plain, "%s/dot.safetensors", dir.path);
  snprintf(wider, sizeof wider, "%s/wider.safetensors", dir.path);
  vector_file_write_plain(plain, "dot", 1);
  vector_file_write_plain(wider, "dot", 2);
  assert_ok(engine_open(&engine_config, &engine));
}

static void add(uint32_t generation, const char *path)
{
  const struct engine_space of = { .name = "v", .model_path = path, .generation = generation };
  struct engine_model *model;

  assert_ok(engine_load_model(&of, &model));
  assert_ok(engine_add_space(engine, &model));
}

/* An item for each letter. In a generation, the earlier in the text the better it scores. */
static void put_items(const char *name, const char *letters)
{
  for (size_t i = 0; letters[i]; i++) {
    float score = 100 - (float)i;
    fixture_put_vector(engine, span_of(letters + i, 1), name, &score, 1);
  }
}

static void compare_with(uint32_t generation, double share)
{
  shadow_board_begin(&board);
  assert_ok(shadow_board_list(&board, 0, generation, share, ""));
  shadow_board_end(&board);
}

static int open_all(void **state)
{
  static const uint32_t weight = 1;
  struct fair_queue_config queue_config = { .weights = &weight,
                                            .n_spaces = 1,
                                            .n_workers = 1,
                                            .n_queries = 128,
                                            .max_batch = 4,
                                            .batch_time_ns = CLOCK_NS_PER_MS };

  (void)state;
  offset = 0;
  atomic_store(&counters.shadow_records_lost, 0);
  kafka_fixture_init(&kafka);
  assert_ok(embedded_broker_create_topic(kafka.broker, "comparisons", 1));
  config.kafka = (struct kafka_properties){ kafka.properties, 1 };
  config.query.answer_kafka = (struct kafka_properties){ tls_property, 1 };
  config.models.shadow_topic = (char *)"comparisons";
  config.query.memory_bytes = 16 << 20;
  open_engine();
  assert_ok(query_queue_open(&queue_config, config.query.memory_bytes, &queue));
  assert_ok(shadow_board_init(&config, &board));
  const struct shadow_context context = { &config, &setup, engine, queue, &board, NULL, &counters };
  assert_ok(shadow_thread_open(&context, &shadows));
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  shadow_thread_close(&shadows);
  shadow_board_fini(&board);
  query_queue_close(&queue);
  engine_close(&engine);
  temp_dir_fini(&dir);
  kafka_fixture_fini(&kafka);
  return 0;
}

/* A query as the intake makes it. */
static struct pending_query *make(const char *name, uint32_t k)
{
  static const float one = 1.0f;
  struct pending_query *query = query_queue_take_query(queue);

  assert_non_null(query);
  query->query =
      (struct query){ .id = span_of_str("q \"1\""), .space = span_of_str(name), .k = k, .vector = { &one, 1 } };
  query->has_key = true;
  query->key = span_of_str("key");
  query->space = 0;
  query->partition = 0;
  query->offset = offset++;
  query->deadline_ns = PENDING_NO_DEADLINE;
  assert_ok(engine_check_query(engine, &query->query, &query->number, &query->method));
  return query;
}

/* Offer a query that was answered. Returns whether it was taken. */
static bool offer(struct pending_query *query)
{
  bool is_taken = shadow_thread_offer(shadows, query);

  if (!is_taken)
    query_queue_free_query(queue, query);
  return is_taken;
}

static uint64_t n_ended(const struct shadow_row *row)
{
  uint64_t n = row->n_compared;

  for (int why = 0; why < SHADOW_DROPS; why++)
    n += row->n_dropped[why];
  return n;
}

/* Wait until so many queries were compared or dropped, and return the row. */
static struct shadow_row await(uint32_t generation, uint64_t n)
{
  int64_t until_ns = clock_now_ns() + PATIENCE_S * CLOCK_NS_PER_S;

  for (;;) {
    shadow_board_lock(&board);
    const struct shadow_row *row = shadow_board_find(&board, 0, generation);
    struct shadow_row copy = row ? *row : (struct shadow_row){ 0 };
    shadow_board_unlock(&board);
    if (n_ended(&copy) >= n)
      return copy;
    assert_true(clock_now_ns() < until_ns);
    clock_sleep_ns(CLOCK_NS_PER_MS);
  }
}

static void assert_near(double value, double expected)
{
  if (!(fabs(value - expected) < 1e-9))
    fail_msg("%.17g, not %.17g", value, expected);
}

/* The next record of the topic. */
static json_t *read_record(struct kafka_tap *tap)
{
  rd_kafka_message_t *m = kafka_tap_next(tap, PATIENCE_S * 1000);

  assert_non_null(m);
  assert_int_equal(m->key_len, 3);
  json_t *record = json_loadb(m->payload, m->len, 0, NULL);
  assert_non_null(record);
  rd_kafka_message_destroy(m);
  return record;
}

static void assert_answer(json_t *record, const char *name, int generation, const char *letters)
{
  json_t *answer = json_object_get(record, name), *hits = json_object_get(answer, "hits");

  assert_int_equal(json_integer_value(json_object_get(answer, "generation")), generation);
  assert_int_equal(json_array_size(hits), strlen(letters));
  for (size_t i = 0; letters[i]; i++) {
    const char *key = json_string_value(json_object_get(json_array_get(hits, i), "key"));
    assert_int_equal(key[0], letters[i]);
    assert_true(json_is_number(json_object_get(json_array_get(hits, i), "score")));
  }
}

static void both_answers_are_compared_and_written(void **state)
{
  struct kafka_tap tap;

  (void)state;
  add(2, plain);
  put_items("v", "abcdef");
  put_items("v@2", "badxyz"); /* of abcd, the current best four: b a d, of which b a are in the wrong order */
  compare_with(2, 1);
  assert_true(offer(make("v", 4)));
  struct shadow_row row = await(2, 1);
  assert_int_equal(row.n_compared, 1);
  assert_near(row.overlap, 3.0 / 4);
  assert_int_equal(row.n_ranked, 1);
  assert_near(row.correlation, 1 - 2.0 / 3);

  kafka_tap_init(&tap, &kafka, "comparisons", 1);
  json_t *record = read_record(&tap);
  kafka_tap_fini(&tap);
  assert_string_equal(json_string_value(json_object_get(record, "id")), "q \"1\"");
  assert_string_equal(json_string_value(json_object_get(record, "space")), "v");
  assert_int_equal(json_integer_value(json_object_get(record, "current_generation")), 1);
  assert_int_equal(json_integer_value(json_object_get(record, "shadow_generation")), 2);
  assert_near(json_number_value(json_object_get(record, "overlap")), 0.75);
  assert_near(json_number_value(json_object_get(record, "correlation")), 0.333333333);
  assert_answer(record, "current", 1, "abcd");
  assert_answer(record, "shadow", 2, "badx");
  json_decref(record);
}

static void the_same_model_and_parts_agree_wholly(void **state)
{
  (void)state;
  add(2, plain);
  put_items("v", "abcdef");
  put_items("v@2", "abcdef");
  compare_with(2, 1);
  for (int i = 0; i < 50; i++)
    assert_true(offer(make("v", 5)));
  struct shadow_row row = await(2, 50);
  assert_int_equal(row.n_compared, 50);
  assert_near(row.overlap, 50);
  assert_near(row.correlation, 50);
}

static void exclusions_and_k_are_those_of_the_query(void **state)
{
  struct span excluded[] = { span_of_str("a"), span_of_str("c") };
  struct pending_query *query;

  (void)state;
  add(2, plain);
  put_items("v", "abcdef");
  put_items("v@2", "acbxyz");
  compare_with(2, 1);
  query = make("v", 2);
  query->query.exclude = excluded;
  query->query.n_exclude = 2;
  assert_true(offer(query)); /* b d, and b x */
  struct shadow_row row = await(2, 1);
  assert_near(row.overlap, 0.5);
  assert_int_equal(row.n_ranked, 0);
}

static void queries_outside_the_share_are_not_taken(void **state)
{
  (void)state;
  add(2, plain);
  put_items("v", "ab");
  assert_false(offer(make("v", 2)));
  compare_with(2, 0);
  assert_false(offer(make("v", 2)));
  compare_with(2, 1);
  assert_false(offer(make("v@1", 2)));
  assert_false(offer(make("v@2", 2)));
  assert_int_equal(await(2, 0).n_compared, 0);
}

static void what_cannot_be_compared_is_counted_by_its_reason(void **state)
{
  (void)state;
  add(2, wider);
  compare_with(2, 1);
  assert_true(offer(make("v", 2)));
  struct shadow_row row = await(2, 1);
  assert_int_equal(row.n_dropped[SHADOW_REFUSED], 1);
  assert_non_null(strstr(row.reason, "vector"));

  add(3, plain);
  compare_with(3, 1);
  assert_true(offer(make("v", 2)));
  assert_int_equal(await(3, 1).n_dropped[SHADOW_EMPTY], 1);

  struct pending_query *query = make("v", 2);
  assert_ok(engine_set_current(engine, span_of_str("v"), 3));
  assert_true(offer(query)); /* the board does not know it yet */
  assert_int_equal(await(3, 2).n_dropped[SHADOW_CHANGED], 1);
  compare_with(7, 1);
  assert_true(offer(make("v", 2)));
  assert_int_equal(await(7, 1).n_dropped[SHADOW_CHANGED], 1);
}

/* While a query waits for a worker, nothing is compared, and only so many queries are taken. */
static void a_busy_daemon_compares_less(void **state)
{
  struct pending_query *pending[4];
  struct query_batch batch = { .queries = pending };
  uint64_t n_taken = 0, n_refused = 0;

  (void)state;
  add(2, plain);
  put_items("v", "abc");
  put_items("v@2", "abc");
  compare_with(2, 1);
  query_queue_push(queue, make("v", 2));
  for (int i = 0; i < SHADOW_WAITING_MAX + 20; i++) {
    bool is_taken = offer(make("v", 2));
    n_taken += is_taken;
    n_refused += !is_taken;
  }
  assert_in_range(n_taken, SHADOW_WAITING_MAX, SHADOW_WAITING_MAX + 1); /* the thread may have one in its hands */
  struct shadow_row row = await(2, n_refused);
  assert_int_equal(row.n_compared, 0);
  assert_int_equal(row.n_dropped[SHADOW_BUSY], n_refused);
  assert_true(query_queue_pop(queue, &batch));
  query_queue_finish(queue, &batch, batch.n, 1);
  assert_int_equal(await(2, n_taken + n_refused).n_compared, n_taken);
}

/* Queries that wait when the daemon stops are given back. */
static void a_stop_drops_what_waits(void **state)
{
  (void)state;
  compare_with(2, 1);
  query_queue_push(queue, make("v", 2));
  for (int i = 0; i < 10; i++)
    assert_true(offer(make("v", 2)));
  shadow_thread_close(&shadows);
  for (int i = 0; i < 127; i++)
    assert_non_null(query_queue_take_query(queue));
  assert_null(query_queue_take_query(queue));
}

/* A search may take long, and a comparison has up to six. */
static void no_search_begins_after_a_stop(void **state)
{
  static const _Atomic bool is_stopping = true;
  struct shadow_search search = { .engine = engine, .is_stopping = &is_stopping };
  struct pending_query *query;
  struct shadow_pair pair;

  (void)state;
  add(2, plain);
  query = make("v", 2);
  assert_int_equal(shadow_search_both(&search, &query->query, 2, false, &pair), ERR_STOPPING);
  shadow_search_fini(&search);
  query_queue_free_query(queue, query);
}

static void a_broker_that_is_away_stops_no_comparison(void **state)
{
  static const struct kafka_property nobody[] = { { "bootstrap.servers", "127.0.0.1:1" } };

  (void)state;
  add(2, plain);
  put_items("v", "abc");
  put_items("v@2", "abc");
  shadow_thread_close(&shadows);
  config.kafka = (struct kafka_properties){ nobody, 1 };
  const struct shadow_context context = { &config, &setup, engine, queue, &board, NULL, &counters };
  assert_ok(shadow_thread_open(&context, &shadows));
  compare_with(2, 1);
  assert_true(offer(make("v", 2)));
  assert_int_equal(await(2, 1).n_compared, 1);
  shadow_thread_close(&shadows);
  assert_int_equal(counters_get(&counters.shadow_records_lost), 1);
}

static void certificates_that_do_not_fit_are_waited_for(void **state)
{
  (void)state;
  add(2, plain);
  put_items("v", "ab");
  put_items("v@2", "ab");
  compare_with(2, 1);
  tls_property_renew(false);
  for (int i = 0; i < 20; i++)
    assert_true(offer(make("v", 2)));
  assert_int_equal(await(2, 20).n_compared, 20);
  assert_int_equal(log_watch_count("event=kafka_client_not_renewed client=shadow"), 1);
  assert_int_equal(counters_get(&counters.shadow_records_lost), 0); /* the former producer goes on */
  tls_property_renew(true);
}

/* Queries may be read long after the start, while certificates are being changed. */
static void a_producer_that_cannot_be_opened_yet_is_opened_later(void **state)
{
  const struct shadow_context context = { &config, &setup, engine, queue, &board, NULL, &counters };
  struct kafka_tap tap;
  rd_kafka_message_t *m;
  uint64_t n = 1;

  (void)state;
  add(2, plain);
  put_items("v", "ab");
  put_items("v@2", "ab");
  compare_with(2, 1);
  shadow_thread_close(&shadows);
  tls_property_renew(false);
  assert_ok(shadow_thread_open(&context, &shadows));
  assert_true(offer(make("v", 2)));
  assert_int_equal(await(2, n).n_compared, 1);
  assert_int_equal(counters_get(&counters.shadow_records_lost), 1);
  assert_true(log_watch_has("event=kafka_client_not_opened client=shadow"));
  tls_property_renew(true);
  kafka_tap_init(&tap, &kafka, "comparisons", 1);
  while (!(m = kafka_tap_next(&tap, 50)) && n < PATIENCE_S * 20) {
    assert_true(offer(make("v", 2)));
    await(2, ++n);
  }
  assert_non_null(m);
  rd_kafka_message_destroy(m);
  kafka_tap_fini(&tap);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(both_answers_are_compared_and_written, open_all, close_all),
    cmocka_unit_test_setup_teardown(the_same_model_and_parts_agree_wholly, open_all, close_all),
    cmocka_unit_test_setup_teardown(exclusions_and_k_are_those_of_the_query, open_all, close_all),
    cmocka_unit_test_setup_teardown(queries_outside_the_share_are_not_taken, open_all, close_all),
    cmocka_unit_test_setup_teardown(what_cannot_be_compared_is_counted_by_its_reason, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_busy_daemon_compares_less, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_stop_drops_what_waits, open_all, close_all),
    cmocka_unit_test_setup_teardown(no_search_begins_after_a_stop, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_broker_that_is_away_stops_no_comparison, open_all, close_all),
    cmocka_unit_test_setup_teardown(certificates_that_do_not_fit_are_waited_for, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_producer_that_cannot_be_opened_yet_is_opened_later, open_all, close_all),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
