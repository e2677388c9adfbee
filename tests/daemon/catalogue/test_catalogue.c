/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread from the topic to the store and the engine, over restarts, another topic and brokers that go
 * away. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/catalogue/catalogue.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

#include <librdkafka/rdkafka_mock.h>

enum { PARTITIONS = 3, SPLITS = 2, SUBITEMS = 8 };

static struct temp_dir dir;
static char model_path[sizeof dir.path + 32], store_path[sizeof dir.path + 32];

/* Settings of the lives to come; usual_settings() before each test. */
static uint64_t max_items, rebuild_min_percent;
static enum unknown_policy unknown_spaces;
static bool is_embedded, has_second_space;

static int usual_settings(void **state)
{
  (void)state;
  max_items = 1000;
  rebuild_min_percent = 0;
  unknown_spaces = UNKNOWN_REFUSE;
  is_embedded = has_second_space = false;
  return 0;
}

/* One life of the daemon's catalogue half. */
struct life {
  struct config config;
  struct kafka_setup setup;
  struct counters counters;
  struct alarm alarm;
  struct engine *engine;
  struct store *store;
  struct delivery *delivery;
  struct catalogue *catalogue;
};

static void open_engine(struct engine **out)
{
  struct engine_space spaces[] = { { .name = "pq", .model_path = model_path },
                                   { .name = "no", .model_path = model_path } };
  struct engine_config config = { spaces, has_second_space ? 2 : 1, 1000, 1000, 4, isa_detect(), ENGINE_CPU };

  assert_ok(engine_open(&config, out));
}

/* letters: where dead letters go, NULL for the same broker. */
static struct life *open_life(const struct kafka_fixture *k, const struct kafka_layers *letters, bool stops)
{
  struct life *l = calloc(1, sizeof *l);
  struct kafka_layers same = kafka_fixture_layers(k, false);
  struct catalogue_context context = {
    &l->config, &l->setup, NULL, NULL, NULL, &l->counters, &l->alarm,
  };

  l->config.kafka = (struct kafka_properties){ k->properties, 2 };
  l->config.catalogue.topic = "items";
  l->config.catalogue.dead_letter_topic = "letters";
  l->config.catalogue.publish_interval_ms = 1;
  l->config.catalogue.batch_items = 50;
  l->config.catalogue.partitions_refresh_ms = 200;
  l->config.catalogue.max_items = max_items;
  l->config.catalogue.rebuild_min_percent = rebuild_min_percent;
  l->config.catalogue.unknown_spaces = unknown_spaces;
  l->config.embedded_broker.is_enabled = is_embedded;
  l->config.store_path = store_path;
  l->config.catalogue.stops_on_discontinuity = stops;
  l->setup.config = &l->config;
  assert_ok(alarm_init(&l->alarm));
  open_engine(&l->engine);
  assert_ok(store_open(store_path, &l->store));
  struct delivery_config delivery = {
    .layers = letters ? letters : &same,
    .query_topic = "queries",
    .answer_topic = "answers",
    .dead_letter_topic = "letters",
    .counters = &l->counters,
  };
  assert_ok(delivery_open(&delivery, &l->delivery));
  context.engine = l->engine;
  context.store = l->store;
  context.delivery = l->delivery;
  assert_ok(catalogue_open(&context, &l->catalogue));
  return l;
}

static void close_life(struct life *l)
{
  delivery_give_up_at(l->delivery, clock_now_ns() + CLOCK_NS_PER_S);
  catalogue_stop(l->catalogue);
  delivery_close(&l->delivery);
  catalogue_close(&l->catalogue);
  store_close(&l->store);
  engine_close(&l->engine);
  alarm_fini(&l->alarm);
  free(l);
}

static bool has_alarm(struct life *l)
{
  struct pollfd fd = { .fd = l->alarm.fd, .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

static void wait_for_phase(struct life *l, enum catalogue_phase phase)
{
  int64_t end_ns = kafka_deadline_ns();

  while (catalogue_phase(l->catalogue) != phase && clock_now_ns() < end_ns && !has_alarm(l))
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_string_equal(catalogue_phase_name(catalogue_phase(l->catalogue)), catalogue_phase_name(phase));
}

static void wait_until_live(struct life *l)
{
  wait_for_phase(l, CATALOGUE_LIVE);
}

static void wait_until_seen(struct life *l, int32_t partition, int64_t next)
{
  struct position position = { partition, next };
  int64_t end_ns = kafka_deadline_ns();

  while (!engine_has_seen(l->engine, &position, 1) && clock_now_ns() < end_ns)
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_true(engine_has_seen(l->engine, &position, 1));
}

static void open_broker(struct kafka_fixture *k)
{
  kafka_fixture_init(k);
  assert_ok(embedded_broker_create_topic(k->broker, "items", PARTITIONS));
  assert_ok(embedded_broker_create_topic(k->broker, "letters", 1));
}

/* What messages were reported as: the next offset of each partition. */
struct written {
  int64_t next[PARTITIONS];
};

static void on_report(void *context, const struct sender_report *report)
{
  struct written *w = context;

  assert_true(report->fate == SENDER_DELIVERED);
  w->next[report->partition] = report->offset + 1;
}

/* Produce values (NULL: a tombstone) for keys; `written` goes on from what it has. */
static void produce(const struct kafka_fixture *k, const char *const (*rows)[2], size_t n, struct written *written)
{
  struct kafka_layers layers = kafka_fixture_layers(k, false);
  struct sender *s;

  assert_ok(sender_open(&layers, on_report, written, &s));
  for (size_t i = 0; i < n; i++) {
    struct sender_message message = { .topic = "items",
                                      .has_key = rows[i][0],
                                      .key = span_of_str(rows[i][0] ? rows[i][0] : ""),
                                      .has_value = rows[i][1],
                                      .value = span_of_str(rows[i][1] ? rows[i][1] : "") };
    assert_ok(sender_send(s, &message));
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  sender_close(&s);
}

#define GOOD(codes) "{\"parts\":{\"pq\":{\"codes\":[" codes "]}}}"

/* The keys that a space holds are just these. */
static void assert_items_of(struct life *l, const char *space, const char *const *keys, size_t n)
{
  static const float vector[SPLITS] = { 1.0f, 1.0f };
  struct query query = { .space = span_of_str(space), .k = 1000, .vector = { vector, SPLITS } };
  struct searcher *s;
  struct answer answer;

  assert_ok(searcher_open(l->engine, &s));
  fixture_search(l->engine, s, &query, 1, &answer);
  for (size_t i = 0; i < answer.n_hits; i++) {
    bool is_known = false;
    for (size_t j = 0; j < n; j++)
      is_known |= span_equal(answer.hits[i].key, span_of_str(keys[j]));
    if (!is_known)
      fail_msg("%.*s should not be there", (int)answer.hits[i].key.n, (const char *)answer.hits[i].key.p);
  }
  assert_int_equal(answer.n_hits, n);
  searcher_close(&s);
}

static void assert_items(struct life *l, const char *const *keys, size_t n)
{
  assert_items_of(l, "pq", keys, n);
}

static void wait_for_all(struct life *l, const struct written *written)
{
  for (int32_t p = 0; p < PARTITIONS; p++)
    wait_until_seen(l, p, written->next[p]);
}

static void fresh_store(void)
{
  temp_dir_remove(store_path);
}

static void the_topic_becomes_items_and_dead_letters(void **state)
{
  static const char *const rows[][2] = {
    { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("3,4") }, { "b", NULL }, { "bad-code", GOOD("1,8") },
    { "empty", "" }, { "text", "hello" }, { "other", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" },
    { NULL, GOOD("1,2") }, { "", GOOD("1,2") },
    { "no-parts", "{}" }, { "c", GOOD("5,6") }, { "d", GOOD("0,0") },        { "d", NULL },        { "d", GOOD("7,7") },
  };
  static const char *const keys[] = { "a", "c", "d" };
  struct kafka_fixture k;
  struct written written = { 0 };
  struct kafka_tap tap;
  char text[2048];

  (void)state;
  fresh_store();
  open_broker(&k);
  struct life *l = open_life(&k, NULL, false);
  produce(&k, rows, sizeof rows / sizeof rows[0], &written);
  wait_for_all(l, &written);
  wait_until_live(l);
  assert_items(l, keys, 3);
  assert_false(has_alarm(l));
  assert_int_equal(counters_get(&l->counters.dead_letters), 7);
  kafka_tap_init(&tap, &k, "letters", 1);
  for (int i = 0; i < 7; i++) {
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    assert_string_equal(kafka_tap_header(m, "sluice.topic", text), "items");
    assert_true(strlen(kafka_tap_header(m, "sluice.reason", text)) > 10);
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  close_life(l);
  kafka_fixture_fini(&k);
}

static void a_restart_goes_on_where_the_store_stands(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") } };
  static const char *const second[][2] = { { "b", NULL }, { "d", GOOD("1,2") } };
  static const char *const keys[] = { "a", "c", "d" };
  struct kafka_fixture k;
  struct written written = { 0 };

  (void)state;
  fresh_store();
  open_broker(&k);
  produce(&k, first, 3, &written);
  struct life *l = open_life(&k, NULL, true);
  wait_for_all(l, &written);
  wait_until_live(l);
  close_life(l);
  produce(&k, second, 2, &written);
  for (int round = 0; round < 2; round++) { /* with news and without */
    l = open_life(&k, NULL, true);
    wait_until_live(l);
    wait_for_all(l, &written);
    assert_items(l, keys, 3);
    assert_int_equal(counters_get(&l->counters.discontinuities), 0);
    assert_int_equal(counters_get(&l->counters.applied) + counters_get(&l->counters.deleted), round ? 0 : 2);
    assert_false(has_alarm(l));
    close_life(l);
  }
  kafka_fixture_fini(&k);
}

static void accept_rebuild(const struct life *l)
{
  char path[sizeof store_path + 32];

  snprintf(path, sizeof path, "%s/accept-rebuild", store_path);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  struct catalogue_report *report = catalogue_report_of(l->catalogue);
  catalogue_report_lock(report);
  fprintf(file, "%llu\n", (unsigned long long)report->rebuild.number);
  catalogue_report_unlock(report);
  fclose(file);
}

/* A test's next broker may bear the id of the one before, or another one, which asks for a person. */
static void wait_until_live_accepting(struct life *l)
{
  int64_t end_ns = kafka_deadline_ns();

  while (catalogue_phase(l->catalogue) != CATALOGUE_LIVE && clock_now_ns() < end_ns) {
    if (catalogue_phase(l->catalogue) == CATALOGUE_AWAITING)
      accept_rebuild(l);
    clock_sleep_ns(10 * CLOCK_NS_PER_MS);
  }
  wait_until_live(l);
}

/* The partition of a key is the producer's choice: find one that got nothing. */
static int32_t empty_partition(const struct written *written)
{
  for (int32_t p = 0; p < PARTITIONS; p++) {
    if (written->next[p] == 0)
      return p;
  }
  fail_msg("each partition got a record");
  return -1;
}

static void another_topic_rebuilds_items_and_watermark(void **state)
{
  static const char *const first[][2] = {
    { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") }, { "d", GOOD("1,2") },
    { "e", GOOD("1,2") }, { "f", GOOD("1,2") }, { "g", GOOD("1,2") }, { "h", GOOD("1,2") },
  };
  static const char *const second[][2] = { { "b", GOOD("3,3") }, { "b", GOOD("4,4") } };
  static const char *const keys[] = { "b" };
  struct kafka_fixture k;
  struct written was = { 0 }, written = { 0 };

  (void)state;
  fresh_store();
  open_broker(&k);
  produce(&k, first, 8, &was);
  struct life *l = open_life(&k, NULL, false);
  wait_for_all(l, &was);
  wait_until_live(l);
  close_life(l);
  kafka_fixture_fini(&k);

  open_broker(&k);
  produce(&k, second, 2, &written);
  int32_t empty = empty_partition(&written);
  assert_true(was.next[0] && was.next[1] && was.next[2]);
  l = open_life(&k, NULL, false);
  wait_until_live_accepting(l);
  wait_for_all(l, &written);
  assert_true(counters_get(&l->counters.discontinuities) >= 1);
  assert_items(l, keys, 1);
  /* What the former topic had in that partition is not seen in this one. */
  assert_false(engine_has_seen(l->engine, &(struct position){ empty, 1 }, 1));
  close_life(l);

  l = open_life(&k, NULL, true); /* and the store is this topic's now */
  wait_until_live(l);
  assert_items(l, keys, 1);
  assert_int_equal(counters_get(&l->counters.discontinuities), 0);
  close_life(l);
  kafka_fixture_fini(&k);
}

static void under_the_policy_stop_another_topic_raises_the_alarm_and_keeps_the_store(void **state)
{
  static const char *const rows[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") } };
  struct kafka_fixture k;
  struct written written = { 0 };
  struct store_stats stats;

  (void)state;
  fresh_store();
  open_broker(&k);
  produce(&k, rows, 2, &written);
  struct life *l = open_life(&k, NULL, true);
  wait_for_all(l, &written);
  wait_until_live(l);
  close_life(l);
  kafka_fixture_fini(&k);

  open_broker(&k);
  l = open_life(&k, NULL, true);
  int64_t end_ns = kafka_deadline_ns();
  while (!has_alarm(l) && clock_now_ns() < end_ns)
    clock_sleep_ns(5 * CLOCK_NS_PER_MS);
  assert_true(has_alarm(l));
  assert_true(catalogue_phase(l->catalogue) != CATALOGUE_LIVE);
  store_stats(l->store, &stats);
  assert_int_equal(stats.n_items, 2);
  close_life(l);
  kafka_fixture_fini(&k);
}

static void a_rebuild_that_leaves_too_few_items_waits_and_the_old_ones_are_served(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") } };
  static const char *const second[][2] = { { "z", GOOD("3,3") } };
  static const char *const old_keys[] = { "a", "b", "c" }, *const new_keys[] = { "z" };
  struct kafka_fixture k;
  struct written written = { 0 }, rewritten = { 0 };

  (void)state;
  fresh_store();
  open_broker(&k);
  produce(&k, first, 3, &written);
  struct life *l = open_life(&k, NULL, false);
  wait_for_all(l, &written);
  wait_until_live(l);
  close_life(l);
  kafka_fixture_fini(&k);

  rebuild_min_percent = 50;
  open_broker(&k);
  produce(&k, second, 1, &rewritten);
  for (int round = 0; round < 2; round++) { /* over a restart, too */
    l = open_life(&k, NULL, false);
    wait_for_phase(l, CATALOGUE_AWAITING);
    assert_true(catalogue_is_serving(l->catalogue));
    assert_items(l, old_keys, 3);
    assert_false(engine_has_seen(l->engine, &(struct position){ 0, 1 }, 1)); /* of the new log, nothing is seen */
    if (round == 0)
      close_life(l);
  }
  wait_until_live_accepting(l);
  wait_for_all(l, &rewritten);
  assert_items(l, new_keys, 1);
  assert_int_equal(counters_get(&l->counters.rebuilds), 1);
  close_life(l);
  kafka_fixture_fini(&k);
}

static void a_full_catalogue_applies_deletes_and_goes_on_when_there_is_room(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") },
                                          { "d", GOOD("1,2") }, { "e", GOOD("1,2") } };
  static const char *const deletes[][2] = { { "a", NULL }, { "b", NULL }, { "c", NULL }, { "d", NULL }, { "e", NULL } };
  static const char *const later[][2] = { { "f", GOOD("1,2") } };
  static const char *const keys[] = { "f" };
  struct kafka_fixture k;
  struct written written = { 0 };

  (void)state;
  fresh_store();
  max_items = 3;
  open_broker(&k);
  produce(&k, first, 5, &written);
  struct life *l = open_life(&k, NULL, true);
  wait_for_phase(l, CATALOGUE_FULL);
  assert_true(catalogue_is_serving(l->catalogue));
  close_life(l);
  l = open_life(&k, NULL, true); /* a restart is no way out, and no outage */
  wait_for_phase(l, CATALOGUE_FULL);
  assert_true(catalogue_is_serving(l->catalogue));
  produce(&k, deletes, 5, &written);
  wait_until_live(l);
  produce(&k, later, 1, &written);
  wait_for_all(l, &written);
  assert_items(l, keys, 1);
  assert_false(has_alarm(l));
  close_life(l);
  kafka_fixture_fini(&k);
}

static void a_part_of_an_unknown_space_is_served_once_the_space_is_configured(void **state)
{
  static const char *const rows[][2] = {
    { "a", "{\"parts\":{\"pq\":{\"codes\":[1,2]},\"no\":{\"codes\":[1,2]}}}" },
    { "b", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" },
    { "c", "{\"parts\":{\"pq\":{\"codes\":[1,99]},\"no\":{\"codes\":[1,2]}}}" }, /* a wrong part refuses all of it */
  };
  static const char *const known[] = { "a" }, *const unknown[] = { "a", "b" };
  struct kafka_fixture k;
  struct written written = { 0 };

  (void)state;
  fresh_store();
  unknown_spaces = UNKNOWN_KEEP;
  open_broker(&k);
  produce(&k, rows, 3, &written);
  struct life *l = open_life(&k, NULL, true);
  wait_for_all(l, &written);
  wait_until_live(l);
  assert_items(l, known, 1);
  assert_int_equal(counters_get(&l->counters.dead_letters), 1);
  close_life(l);
  has_second_space = true;
  l = open_life(&k, NULL, true);
  wait_until_live(l);
  assert_items(l, known, 1);
  assert_items_of(l, "no", unknown, 2);
  assert_int_equal(counters_get(&l->counters.applied), 0); /* the log was not read again */
  close_life(l);
  kafka_fixture_fini(&k);
}

static void a_part_of_an_unknown_space_can_be_dropped(void **state)
{
  static const char *const rows[][2] = { { "a", "{\"parts\":{\"pq\":{\"codes\":[1,2]},\"no\":{\"codes\":[1,2]}}}" },
                                         { "b", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" } };
  static const char *const known[] = { "a" };
  struct kafka_fixture k;
  struct written written = { 0 };

  (void)state;
  fresh_store();
  unknown_spaces = UNKNOWN_SKIP;
  open_broker(&k);
  produce(&k, rows, 2, &written);
  struct life *l = open_life(&k, NULL, true);
  wait_for_all(l, &written);
  wait_until_live(l);
  assert_int_equal(counters_get(&l->counters.dead_letters), 0);
  close_life(l);
  has_second_space = true;
  l = open_life(&k, NULL, true);
  wait_until_live(l);
  assert_items(l, known, 1);
  assert_items_of(l, "no", known, 0);
  close_life(l);
  kafka_fixture_fini(&k);
}

static void an_embedded_broker_that_begins_anew_deletes_nothing(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") } };
  static const char *const second[][2] = { { "c", GOOD("1,2") } };
  static const char *const keys[] = { "a", "b", "c" };
  struct kafka_fixture k;
  struct written written = { 0 }, rewritten = { 0 };

  (void)state;
  fresh_store();
  is_embedded = true;
  open_broker(&k);
  produce(&k, first, 2, &written);
  struct life *l = open_life(&k, NULL, false);
  wait_for_all(l, &written);
  wait_until_live(l);
  close_life(l);
  kafka_fixture_fini(&k);
  open_broker(&k);
  produce(&k, second, 1, &rewritten);
  l = open_life(&k, NULL, false);
  wait_until_live(l);
  wait_for_all(l, &rewritten);
  assert_items(l, keys, 3);
  assert_int_equal(counters_get(&l->counters.discontinuities), 0);
  close_life(l);
  kafka_fixture_fini(&k);
}

/* A broker for dead letters that the test takes down and up. */
struct letters_broker {
  rd_kafka_t *rk;
  rd_kafka_mock_cluster_t *cluster;
  struct kafka_property property;
  struct kafka_layers layers;
};

static void open_letters_broker(struct letters_broker *b)
{
  char reason[512];

  b->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), reason, sizeof reason);
  b->cluster = rd_kafka_mock_cluster_new(b->rk, 1);
  b->property = (struct kafka_property){ "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(b->cluster) };
  b->layers = (struct kafka_layers){ .layer = { { &b->property, 1 } }, .n = 1 };
}

static void close_letters_broker(struct letters_broker *b)
{
  rd_kafka_mock_cluster_destroy(b->cluster);
  rd_kafka_destroy(b->rk);
}

static void a_dead_letter_topic_that_is_away_does_not_stop_the_catalogue(void **state)
{
  static const char *const rows[][2] = { { "x", "bad" }, { "a", GOOD("1,2") }, { "x", GOOD("1,2") }, { "b", GOOD("1,2") } };
  static const char *const keys[] = { "a", "b", "x" };
  struct kafka_fixture k;
  struct letters_broker letters;
  struct written written = { 0 };
  struct kafka_tap tap;

  (void)state;
  fresh_store();
  open_broker(&k);
  open_letters_broker(&letters);
  rd_kafka_mock_broker_set_down(letters.cluster, 1);
  struct life *l = open_life(&k, &letters.layers, true);
  produce(&k, rows, 4, &written);
  wait_for_all(l, &written);
  wait_until_live(l);
  assert_items(l, keys, 3);
  delivery_give_up_at(l->delivery, clock_now_ns());
  close_life(l);
  close_letters_broker(&letters);

  l = open_life(&k, NULL, true); /* the letter is not lost: its record is read again */
  wait_until_live(l);
  assert_items(l, keys, 3);
  kafka_tap_init(&tap, &k, "letters", 1);
  rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
  assert_non_null(m);
  assert_int_equal(m->key_len, 1);
  rd_kafka_message_destroy(m);
  kafka_tap_fini(&tap);
  close_life(l);
  kafka_fixture_fini(&k);
}

/* The position stays before a record whose dead letter no broker took in time: it is read again, and none is lost. */
static void a_stop_while_dead_letters_wait_loses_no_record(void **state)
{
  static const char *const first[][2] = { { "x", "bad" }, { "x", GOOD("1,2") } };
  static const char *const later[][2] = { { "x", "bad too" } };
  static const char *const keys[] = { "x" };
  struct kafka_fixture k;
  struct letters_broker letters;
  struct written written = { 0 };

  (void)state;
  fresh_store();
  open_broker(&k);
  open_letters_broker(&letters);
  rd_kafka_mock_broker_set_down(letters.cluster, 1);
  struct life *l = open_life(&k, &letters.layers, false);
  wait_until_live(l);
  delivery_give_up_at(l->delivery, clock_now_ns()); /* the daemon is stopping, and the catalogue thread not yet told */
  produce(&k, first, 2, &written);
  int64_t end_ns = kafka_deadline_ns();
  while (counters_get(&l->counters.dead_letters) < 1 && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  clock_sleep_ns(100 * CLOCK_NS_PER_MS);
  rd_kafka_mock_broker_set_up(letters.cluster, 1);
  clock_sleep_ns(1500 * CLOCK_NS_PER_MS); /* the letter is delivered after all */
  produce(&k, later, 1, &written);
  clock_sleep_ns(500 * CLOCK_NS_PER_MS);
  close_life(l);
  close_letters_broker(&letters);

  l = open_life(&k, NULL, true);
  wait_until_live(l);
  wait_for_all(l, &written);
  assert_items(l, keys, 1); /* the good record of the first batch */
  close_life(l);
  kafka_fixture_fini(&k);
}

int main(void)
{
  static const float centroids[SPLITS * SUBITEMS] = { 0 };
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_topic_becomes_items_and_dead_letters, usual_settings),
    cmocka_unit_test_setup(a_restart_goes_on_where_the_store_stands, usual_settings),
    cmocka_unit_test_setup(another_topic_rebuilds_items_and_watermark, usual_settings),
    cmocka_unit_test_setup(under_the_policy_stop_another_topic_raises_the_alarm_and_keeps_the_store, usual_settings),
    cmocka_unit_test_setup(a_rebuild_that_leaves_too_few_items_waits_and_the_old_ones_are_served, usual_settings),
    cmocka_unit_test_setup(a_full_catalogue_applies_deletes_and_goes_on_when_there_is_room, usual_settings),
    cmocka_unit_test_setup(a_part_of_an_unknown_space_is_served_once_the_space_is_configured, usual_settings),
    cmocka_unit_test_setup(a_part_of_an_unknown_space_can_be_dropped, usual_settings),
    cmocka_unit_test_setup(an_embedded_broker_that_begins_anew_deletes_nothing, usual_settings),
    cmocka_unit_test_setup(a_dead_letter_topic_that_is_away_does_not_stop_the_catalogue, usual_settings),
    cmocka_unit_test_setup(a_stop_while_dead_letters_wait_loses_no_record, usual_settings),
  };

  temp_dir_init(&dir);
  snprintf(model_path, sizeof model_path, "%s/pq.safetensors", dir.path);
  snprintf(store_path, sizeof store_path, "%s/store", dir.path);
  model_file_write_recjpq(model_path, centroids, SPLITS, SUBITEMS, 1);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
