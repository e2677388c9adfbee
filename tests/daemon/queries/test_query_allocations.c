/* SPDX-License-Identifier: Apache-2.0 */
/* The query path allocates no memory once it is warm: from the query topic through search and reply to the delivery
 * report.
 *
 * The linker sends every call of malloc, calloc, realloc, aligned_alloc, posix_memalign and mmap in our own objects to
 * the functions below (--wrap, see tests/CMakeLists.txt), whatever thread makes it. They count, then allocate.
 *
 * Not counted: what shared libraries allocate inside. librdkafka copies each message and its headers, allocates for
 * each commit, and has no hook for an allocator. LMDB allocates a transaction and a cursor for each read. jansson
 * allocates each value of a JSON query or answer and frees it before our function returns; it is left as it is, because
 * clients that care for speed send protobuf. libc may allocate in qsort and stdio.
 */
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "daemon/queries/query_thread.h"
#include "proto/sluice.pb-c.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

/* ---- Counted allocations ---- */

static _Atomic bool is_counting;
static _Atomic uint64_t n_allocations;

/* The linker gives these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n_elements, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
int __real_posix_memalign(void **p, size_t alignment, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n_elements, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
int __wrap_posix_memalign(void **p, size_t alignment, size_t n);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);

/* Show the callers of the first few. */
static void count(void)
{
  enum { SHOWN = 3, DEPTH = 12 };
  void *callers[DEPTH];

  if (!atomic_load(&is_counting) || atomic_fetch_add(&n_allocations, 1) >= SHOWN)
    return;
  backtrace_symbols_fd(callers, backtrace(callers, DEPTH), 2);
  fputs("(an allocation)\n", stderr);
}

void *__wrap_malloc(size_t n)
{
  count();
  return __real_malloc(n);
}

void *__wrap_calloc(size_t n_elements, size_t n)
{
  count();
  return __real_calloc(n_elements, n);
}

void *__wrap_realloc(void *p, size_t n)
{
  count();
  return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
  count();
  return __real_aligned_alloc(alignment, n);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t n)
{
  count();
  return __real_posix_memalign(p, alignment, n);
}

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
  count();
  return __real_mmap(at, n, protection, flags, fd, offset);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- The query half of the daemon ---- */

enum { ITEMS = 100, DIM = 8, SPLITS = 2, SUBITEMS = 8 };

static struct temp_dir dir;
static char vector_model[sizeof dir.path + 32], recjpq_model[sizeof dir.path + 32];
static struct kafka_fixture kafka;
static struct config config;
static struct kafka_setup setup = { .config = &config };
static struct counters counters;
static struct alarm alarm_;
static struct engine *engine;
static struct offset_tracker *tracker;
static struct delivery *delivery;
static struct seen *seen;
static struct query_thread *queries;
static struct sender *client;
static struct kafka_tap answers, mine;

static void write_models(void)
{
  float centroids[SPLITS * SUBITEMS];

  for (size_t i = 0; i < SPLITS * SUBITEMS; i++)
    centroids[i] = (float)(i % 5) - 2.0f;
  temp_dir_init(&dir);
  snprintf(vector_model, sizeof vector_model, "%s/dot.safetensors", dir.path);
  snprintf(recjpq_model, sizeof recjpq_model, "%s/recjpq.safetensors", dir.path);
  vector_file_write_plain(vector_model, "dot", 0);
  model_file_write_recjpq(recjpq_model, centroids, SPLITS, SUBITEMS, 1);
}

static void open_engine(void)
{
  struct engine_space spaces[] = { { .name = "dot", .model_path = vector_model, .dim = DIM },
                                   { .name = "pq", .model_path = recjpq_model } };
  static const struct attribute number = { { (const uint8_t *)"number", 6 }, ATTRIBUTE_INTEGER };
  struct engine_config with = { spaces, 2, 1000, 1000, 16, isa_detect(), ENGINE_CPU, 1, { &number, 1 }, { 0 } };
  char key[16];

  assert_ok(engine_open(&with, &engine));
  assert_ok(engine_share_searches(engine, &(struct engine_threads){ 3, 3, .shares_always = true }));
  for (size_t i = 0; i < ITEMS; i++) {
    float v[DIM] = { (float)i, 1.0f, (float)(i % 7) };
    uint8_t codes[SPLITS] = { (uint8_t)(i % SUBITEMS), (uint8_t)(i / SUBITEMS % SUBITEMS) };
    struct part parts[] = { { .space = span_of_str("dot"), .vector = { v, DIM } },
                            { .space = span_of_str("pq"), .codes = span_of(codes, SPLITS) } };
    struct attribute_value value = { number.name, { .kind = VALUE_INTEGER, .integer = (int64_t)i } };
    struct item_change item = { .key = span_of(key, (size_t)snprintf(key, sizeof key, "item%zu", i)),
                                .parts = parts,
                                .n_parts = 2,
                                .attributes = &value,
                                .n_attributes = 1 };
    fixture_apply(engine, &item, 1);
  }
}

static void make_config(void)
{
  static struct config_space spaces[] = { { .name = (char *)"dot", .weight = 1 },
                                          { .name = (char *)"pq", .weight = 1 } };
  static char *patterns[] = { (char *)"mine" };

  config.kafka = (struct kafka_properties){ kafka.properties, 2 };
  config.catalogue.topic = (char *)"items";
  config.catalogue.dead_letter_topic = (char *)"letters";
  config.query.topic = (char *)"queries";
  config.query.group = (char *)"group";
  config.query.answer_topic = (char *)"answers";
  config.query.partials_topic = (char *)"partials";
  config.seen.topic = (char *)"seen";
  config.models.topic = config.models.files_topic = config.models.shadow_topic = (char *)"";
  config.seen.max_per_user = 100;
  config.catalogue.partitions_refresh_ms = 60000;
  config.store_path = dir.path;
  config.query.reply_topics = (struct config_list){ patterns, 1 };
  config.query.batch_size = 16;
  config.query.batch_time_ms = 5;
  config.query.memory_bytes = 64 << 20;
  config.query.workers = 1; /* with two, one might still be cold */
  config.query.at_least_timeout_ms = 1000;
  config.spaces = spaces;
  config.n_spaces = 2;
}

static void open_queries(void)
{
  struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  struct query_thread_context context = {
    .config = &config, .kafka = &setup, .engine = engine, .counters = &counters, .alarm = &alarm_
  };
  struct seen_context of_seen = { &config, &setup, NULL, &counters, &alarm_ };
  bool has_joined;
  struct delivery_config with = {
    .layers = &layers,
    .query_topic = "queries",
    .answer_topic = "answers",
    .dead_letter_topic = "letters",
    .has_reply_topics = true,
    .reply_timeout_ms = 5000,
    .counters = &counters,
    .alarm = &alarm_,
  };

  assert_ok(alarm_init(&alarm_));
  assert_ok(offset_tracker_open(&tracker));
  with.tracker = context.tracker = tracker;
  assert_ok(delivery_open(&with, &delivery));
  context.delivery = of_seen.delivery = delivery;
  assert_ok(seen_open(&of_seen, &seen));
  context.seen = seen;
  assert_ok(query_thread_open(&context, &queries));
  assert_ok(query_thread_join(queries, &has_joined));
  assert_true(has_joined);
  assert_ok(query_thread_start(queries));
}

static int open_all(void **state)
{
  static const char *const topics[] = { "items", "letters", "queries", "answers", "mine", "seen" };
  struct kafka_layers layers;

  (void)state;
  kafka_fixture_init(&kafka);
  layers = kafka_fixture_layers(&kafka, false);
  for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
    assert_ok(embedded_broker_create_topic(kafka.broker, topics[i], 1));
  write_models();
  make_config();
  open_engine();
  open_queries();
  assert_ok(sender_open(&layers, NULL, NULL, &client));
  kafka_tap_init(&answers, &kafka, "answers", 1);
  kafka_tap_init(&mine, &kafka, "mine", 1);
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  kafka_tap_fini(&answers);
  kafka_tap_fini(&mine);
  sender_close(&client);
  query_thread_stop(queries);
  delivery_close(&delivery);
  seen_close(&seen);
  query_thread_close(&queries);
  offset_tracker_close(&tracker);
  engine_close(&engine);
  alarm_fini(&alarm_);
  kafka_fixture_fini(&kafka);
  temp_dir_fini(&dir);
  return 0;
}

/* ---- Queries ---- */

/* Query number i: one of two spaces, two formats, two reply topics, some have one of four filters, some exclude keys,
 * and one in eight is refused with an error. All ids have one length. */
static bool goes_to_mine(unsigned i)
{
  return i & 4;
}

static const char *space_of(unsigned i)
{
  return i % 8 == 7 ? "no" : i & 1 ? "pq" : "dot";
}

static const char *filter_of(unsigned i)
{
  static const char *const filters[] = { "", "number < 70", "not number in (5, 7, 9)", "number = 9", "" };

  return filters[i % 5];
}

enum { EXCLUDED = 3 };
static const char *const excluded[EXCLUDED] = { "item99", "item9", "unknown" };

static size_t n_excluded_of(unsigned i)
{
  return i % 3 == 0 ? EXCLUDED : 0;
}

static size_t make_json(unsigned i, uint8_t value[1024])
{
  return (size_t)snprintf(
      (char *)value, 1024,
      "{\"id\":\"q%06u\",\"space\":\"%s\",\"k\":10,\"reply_topic\":\"%s\",\"exclude_seen_by\":\"me\","
      "\"at_least_seen\":[{\"partition\":0,\"next\":1}],\"vector\":[1,2%s],"
      "\"filter\":\"%s\",\"exclude\":[%s]}",
      i, space_of(i), goes_to_mine(i) ? "mine" : "", i & 1 ? "" : ",0,0,0,0,0,0.5", filter_of(i),
      n_excluded_of(i) ? "\"item99\",\"item9\",\"unknown\"" : "");
}

static size_t make_protobuf(unsigned i, uint8_t value[1024])
{
  static float numbers[DIM] = { 1, 2 };
  Sluice__V1__Vector vector = SLUICE__V1__VECTOR__INIT;
  Sluice__V1__Query query = SLUICE__V1__QUERY__INIT;
  ProtobufCBinaryData keys[EXCLUDED];
  char id[16], space[8], topic[8];

  snprintf(id, sizeof id, "q%06u", i);
  snprintf(space, sizeof space, "%s", space_of(i));
  snprintf(topic, sizeof topic, "%s", goes_to_mine(i) ? "mine" : "");
  vector.data = (ProtobufCBinaryData){ (i & 1 ? SPLITS : DIM) * sizeof(float), (uint8_t *)numbers };
  query.id = id;
  query.space = space;
  query.reply_topic = topic;
  query.k = 10;
  query.vector = &vector;
  query.filter = (char *)filter_of(i);
  query.attributes = (char *[]){ (char *)"number" };
  query.n_attributes = 1;
  for (size_t j = 0; j < EXCLUDED; j++)
    keys[j] = (ProtobufCBinaryData){ strlen(excluded[j]), (uint8_t *)excluded[j] };
  query.exclude = keys;
  query.n_exclude = n_excluded_of(i);
  return sluice__v1__query__pack(&query, value);
}

static void send_query(unsigned i)
{
  uint8_t value[1024];
  size_t n = i & 2 ? make_json(i, value) : make_protobuf(i, value);
  struct sender_message message = {
    .topic = "queries", .has_key = true, .key = span_of_str("client"), .has_value = true, .value = span_of(value, n)
  };

  assert_ok(sender_send(client, &message));
  sender_poll(client, 0);
}

/* All JSON queries leave these out. */
static void see_items(void)
{
  static const char value[] = "{\"items\":[\"item1\",\"item2\",\"item99\"]}";
  struct sender_message message = {
    .topic = "seen", .has_key = true, .key = span_of_str("me"), .has_value = true, .value = span_of_str(value)
  };

  assert_ok(sender_send(client, &message));
  sender_poll(client, 0);
}

static void take_reply(unsigned i)
{
  rd_kafka_message_t *m = kafka_tap_next(goes_to_mine(i) ? &mine : &answers, 3 * KAFKA_TIMEOUT_MS);

  assert_non_null(m);
  rd_kafka_message_destroy(m);
}

/* Bursts warm the pools: many queries are on their way at a time. In the measurement it is one. */
static void the_query_path_allocates_nothing_once_it_is_warm(void **state)
{
  enum { BURSTS = 5, BURST = 400, MEASURED = 200 };
  struct engine_filters filters;
  unsigned next = 0;

  (void)state;
  see_items();
  for (int burst = 0; burst < BURSTS; burst++) {
    for (unsigned i = 0; i < BURST; i++)
      send_query(next + i);
    for (unsigned i = 0; i < BURST; i++)
      take_reply(next++);
  }
  for (unsigned i = 0; i < 50; i++, next++) {
    send_query(next);
    take_reply(next);
  }
  atomic_store(&is_counting, true);
  for (unsigned i = 0; i < MEASURED; i++, next++) {
    send_query(next);
    take_reply(next);
  }
  atomic_store(&is_counting, false);
  assert_int_equal(atomic_load(&n_allocations), 0);
  assert_int_equal(counters_get(&counters.answers) + counters_sum(counters.errors, COUNTERS_ERRORS), next);
  assert_int_equal(counters_sum(counters.errors, COUNTERS_ERRORS), next / 8);
  assert_true(counters_get(&counters.seen_queries) >= next / 4);
  engine_filters_get(engine, &filters);
  assert_true(filters.n_known > MEASURED / 2 && filters.n_evaluated >= 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_query_path_allocates_nothing_once_it_is_warm),
  };

  return cmocka_run_group_tests(tests, open_all, close_all);
}
