/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue thread on an embedded broker, with store, engine and delivery: tests of the thread start and restart it
 * with this. To be included after cmocka.h. */
#ifndef TESTS_SUPPORT_CATALOGUE_FIXTURE_H
#define TESTS_SUPPORT_CATALOGUE_FIXTURE_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/catalogue/catalogue.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { CATALOGUE_PARTITIONS = 3, CATALOGUE_SPLITS = 2, CATALOGUE_SUBITEMS = 8 };

/* Settings of the next catalogue_fixture_open(). */
static struct {
  uint64_t max_items, rebuild_min_percent;
  enum config_unknown unknown_spaces;
  bool is_embedded, has_second_space;
  struct attributes attributes;
  struct kafka_properties kafka; /* of the catalogue's consumers */
} catalogue_settings;

static struct temp_dir catalogue_dir;
static char catalogue_model_path[sizeof catalogue_dir.path + 32], catalogue_store_path[sizeof catalogue_dir.path + 32];

/* Make a folder with a model. */
static inline int catalogue_fixture_make_folder(void **state)
{
  static const float centroids[CATALOGUE_SPLITS * CATALOGUE_SUBITEMS] = { 0 };

  (void)state;
  temp_dir_init(&catalogue_dir);
  snprintf(catalogue_model_path, sizeof catalogue_model_path, "%s/pq.safetensors", catalogue_dir.path);
  snprintf(catalogue_store_path, sizeof catalogue_store_path, "%s/store", catalogue_dir.path);
  model_file_write_recjpq(catalogue_model_path, centroids, CATALOGUE_SPLITS, CATALOGUE_SUBITEMS, 1);
  return 0;
}

static inline int catalogue_fixture_remove_folder(void **state)
{
  (void)state;
  temp_dir_fini(&catalogue_dir);
  return 0;
}

/* Set-up of each test: usual settings and no store. */
static inline int catalogue_fixture_reset(void **state)
{
  (void)state;
  catalogue_settings.max_items = 1000;
  catalogue_settings.rebuild_min_percent = 0;
  catalogue_settings.unknown_spaces = CONFIG_UNKNOWN_REFUSE;
  catalogue_settings.attributes = (struct attributes){ 0 };
  catalogue_settings.kafka = (struct kafka_properties){ 0 };
  catalogue_settings.is_embedded = catalogue_settings.has_second_space = false;
  temp_dir_remove(catalogue_store_path);
  return 0;
}

/* A running catalogue thread and what it needs of the daemon. */
struct catalogue_fixture {
  struct config config;
  struct kafka_setup setup;
  struct counters counters;
  struct alarm alarm;
  struct engine *engine;
  struct store *store;
  struct delivery *delivery;
  struct catalogue *catalogue;
};

static inline void catalogue_fixture_open_engine(struct engine **out)
{
  struct engine_space spaces[] = { { .name = "pq", .model_path = catalogue_model_path },
                                   { .name = "no", .model_path = catalogue_model_path } };
  size_t n_spaces = catalogue_settings.has_second_space ? 2 : 1;
  struct engine_config config = {
    spaces, n_spaces, 1000, 1000, 4, isa_detect(), ENGINE_CPU, 1, catalogue_settings.attributes, { 0 }
  };

  assert_ok(engine_open(&config, out));
}

/* Start the thread with catalogue_settings.
 *
 * letters  where dead letters go; NULL: to the same broker
 * stops    catalogue.on_discontinuity is `stop`
 */
static inline struct catalogue_fixture *catalogue_fixture_open(const struct kafka_fixture *k,
                                                               const struct kafka_layers *letters, bool stops)
{
  struct catalogue_fixture *f = calloc(1, sizeof *f);
  struct kafka_layers same = kafka_fixture_layers(k, false);
  struct catalogue_context context = {
    &f->config, &f->setup, NULL, NULL, NULL, &f->counters, &f->alarm,
  };

  f->config.kafka = (struct kafka_properties){ k->properties, 2 };
  f->config.catalogue.topic = "items";
  f->config.catalogue.kafka = catalogue_settings.kafka;
  f->config.catalogue.dead_letter_topic = "letters";
  f->config.models.topic = "";
  f->config.models.files_topic = "";
  f->config.models.shadow_topic = "";
  f->config.catalogue.publish_interval_ms = 1;
  f->config.catalogue.batch_items = 50;
  f->config.catalogue.partitions_refresh_ms = 200;
  f->config.catalogue.max_items = catalogue_settings.max_items;
  f->config.catalogue.rebuild_min_percent = catalogue_settings.rebuild_min_percent;
  f->config.catalogue.unknown_spaces = catalogue_settings.unknown_spaces;
  f->config.embedded_broker.is_enabled = catalogue_settings.is_embedded;
  f->config.store_path = catalogue_store_path;
  f->config.catalogue.stops_on_discontinuity = stops;
  f->setup.config = &f->config;
  assert_ok(alarm_init(&f->alarm));
  catalogue_fixture_open_engine(&f->engine);
  assert_ok(store_open(catalogue_store_path, &f->store));
  assert_ok(store_set_attributes(f->store, &catalogue_settings.attributes));
  struct delivery_config delivery = {
    .layers = letters ? letters : &same,
    .query_topic = "queries",
    .answer_topic = "answers",
    .dead_letter_topic = "letters",
    .counters = &f->counters,
  };
  assert_ok(delivery_open(&delivery, &f->delivery));
  context.engine = f->engine;
  context.store = f->store;
  context.delivery = f->delivery;
  assert_ok(catalogue_open(&context, &f->catalogue));
  return f;
}

static inline void catalogue_fixture_close(struct catalogue_fixture *f)
{
  delivery_give_up_at(f->delivery, clock_now_ns() + CLOCK_NS_PER_S);
  catalogue_stop(f->catalogue);
  delivery_close(&f->delivery);
  catalogue_close(&f->catalogue);
  store_close(&f->store);
  engine_close(&f->engine);
  alarm_fini(&f->alarm);
  free(f);
}

static inline bool catalogue_fixture_has_alarm(struct catalogue_fixture *f)
{
  struct pollfd fd = { .fd = f->alarm.fd, .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

static inline void catalogue_fixture_wait_for_phase(struct catalogue_fixture *f, enum catalogue_phase phase)
{
  int64_t end_ns = kafka_deadline_ns();

  while (catalogue_phase(f->catalogue) != phase && clock_now_ns() < end_ns && !catalogue_fixture_has_alarm(f))
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_string_equal(catalogue_phase_name(catalogue_phase(f->catalogue)), catalogue_phase_name(phase));
}

static inline void catalogue_fixture_wait_until_live(struct catalogue_fixture *f)
{
  catalogue_fixture_wait_for_phase(f, CATALOGUE_LIVE);
}

static inline void catalogue_fixture_wait_until_seen(struct catalogue_fixture *f, int32_t partition, int64_t next)
{
  struct position position = { partition, next };
  int64_t end_ns = kafka_deadline_ns();

  while (!engine_has_seen(f->engine, &position, 1) && clock_now_ns() < end_ns)
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_true(engine_has_seen(f->engine, &position, 1));
}

static inline void catalogue_fixture_open_broker(struct kafka_fixture *k)
{
  kafka_fixture_init(k);
  assert_ok(embedded_broker_create_topic(k->broker, "items", CATALOGUE_PARTITIONS));
  assert_ok(embedded_broker_create_topic(k->broker, "letters", 1));
}

/* Where produced messages ended: the next offset of each partition. */
struct catalogue_written {
  int64_t next[CATALOGUE_PARTITIONS];
};

static inline void catalogue_fixture_on_report(void *context, const struct sender_report *report)
{
  struct catalogue_written *w = context;

  assert_true(report->fate == SENDER_DELIVERED);
  w->next[report->partition] = report->offset + 1;
}

/* Produce records to the catalogue topic, and move `written` forward.
 *
 * rows  [n], key and value; value NULL: a tombstone
 */
static inline void catalogue_fixture_produce(const struct kafka_fixture *k, const char *const (*rows)[2], size_t n,
                                             struct catalogue_written *written)
{
  struct kafka_layers layers = kafka_fixture_layers(k, false);
  struct sender *s;

  assert_ok(sender_open(&layers, catalogue_fixture_on_report, written, &s));
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

/* The value of a record that can be used. */
#define GOOD(codes) "{\"parts\":{\"pq\":{\"codes\":[" codes "]}}}"

/* Assert that a space holds exactly these keys. */
static inline void catalogue_fixture_assert_space(struct catalogue_fixture *f, const char *space,
                                                  const char *const *keys, size_t n)
{
  static const float vector[CATALOGUE_SPLITS] = { 1.0f, 1.0f };
  struct query query = { .space = span_of_str(space), .k = 1000, .vector = { vector, CATALOGUE_SPLITS } };
  struct searcher *s;
  struct answer answer;

  assert_ok(searcher_open(f->engine, &s));
  fixture_search(f->engine, s, &query, 1, &answer);
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

static inline void catalogue_fixture_assert_items(struct catalogue_fixture *f, const char *const *keys, size_t n)
{
  catalogue_fixture_assert_space(f, "pq", keys, n);
}

static inline void catalogue_fixture_wait_for_all(struct catalogue_fixture *f, const struct catalogue_written *written)
{
  for (int32_t p = 0; p < CATALOGUE_PARTITIONS; p++)
    catalogue_fixture_wait_until_seen(f, p, written->next[p]);
}

#endif
