/* SPDX-License-Identifier: Apache-2.0 */
/* The work on generations with a real engine and a real store, and without Kafka. The store has parts of generations 1
 * to 3 of one space, each with a dimension or a number of codes of its own; the engine has generation 1. */
#ifndef TESTS_SUPPORT_MODEL_WORK_FIXTURE_H
#define TESTS_SUPPORT_MODEL_WORK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/models/model_work.h"
#include "tests/support/assert_ok.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 5000, GENERATIONS = 4 };

struct fixture {
  struct temp_dir dir;
  bool has_codes;
  char models[GENERATIONS][PATH_MAX]; /* of generations 1, 2 and 3 with different dimensions, and a damaged one */
  char digests[GENERATIONS][65];
  struct config_space space;
  struct config config;
  struct engine *engine;
  struct store *store;
  struct model_state state;
  struct model_work work;
};

/* Generation g has vectors of g numbers, or 2 g codes. */
static inline void make_model(const struct fixture *f, size_t g)
{
  static const float centroids[2 * GENERATIONS * 4];

  if (f->has_codes)
    model_file_write_recjpq(f->models[g - 1], centroids, 2 * g, 4, 1);
  else
    vector_file_write_plain(f->models[g - 1], "dot", g);
}

static inline struct part make_part(const struct fixture *f, const char *space, size_t g)
{
  static const uint8_t codes[2 * GENERATIONS] = { 1, 2, 3, 0, 3 };
  static const float numbers[GENERATIONS] = { 1, 2, 3 };

  if (f->has_codes)
    return (struct part){ .space = span_of_str(space), .codes = span_of(codes, 2 * g) };
  return (struct part){ .space = span_of_str(space), .vector = { numbers, g } };
}

static inline void make_models(struct fixture *f)
{
  for (size_t g = 0; g < GENERATIONS - 1; g++) {
    struct engine_space space = { .name = "books", .model_path = f->models[g] };
    struct engine_model *model = NULL;
    snprintf(f->models[g], PATH_MAX, "%s/%zu", f->dir.path, g + 1);
    make_model(f, g + 1);
    assert_ok(engine_load_model(&space, &model));
    snprintf(f->digests[g], sizeof f->digests[g], "%s", engine_model_digest(model));
    engine_model_close(&model);
  }
  snprintf(f->models[GENERATIONS - 1], PATH_MAX, "%s/none", f->dir.path);
}

/* Each item has a part of each of the generations 1 to 3. */
static inline void fill_store(struct fixture *f)
{
  static const char *const names[] = { "books", "books@2", "books@3" };
  static struct item_change changes[ITEMS];
  static char keys[ITEMS][8];
  struct part parts[3];

  for (size_t i = 0; i < 3; i++)
    parts[i] = make_part(f, names[i], i + 1);
  for (size_t i = 0; i < ITEMS; i++) {
    size_t n = (size_t)snprintf(keys[i], sizeof keys[i], "%05zu", i);
    changes[i] = (struct item_change){ .key = span_of(keys[i], n), .parts = parts, .n_parts = 3, .offset = (int64_t)i };
  }
  assert_ok(store_apply(f->store, changes, ITEMS, NULL, 0, NULL));
  for (size_t i = 0; i < ITEMS; i++)
    changes[i].n_parts = 1;
  assert_ok(engine_apply(f->engine, changes, ITEMS, NULL, 0));
}

static inline int setup_with(void **state, bool has_codes)
{
  struct fixture *f = calloc(1, sizeof *f);
  char path[PATH_MAX + 8];

  assert_non_null(f);
  f->has_codes = has_codes;
  temp_dir_init(&f->dir);
  make_models(f);
  f->space = (struct config_space){ .name = "books", .model_path = f->models[0], .has_cells = true };
  f->config = (struct config){ .spaces = &f->space, .n_spaces = 1 };
  struct engine_space space = { .name = "books", .model_path = f->models[0] };
  struct engine_config config = {
    .spaces = &space, .n_spaces = 1, .max_items = ITEMS, .max_k = 10, .max_batch = 1, .isa = ISA_REF
  };
  assert_ok(engine_open(&config, &f->engine));
  snprintf(path, sizeof path, "%s/store", f->dir.path);
  assert_ok(store_open(path, &f->store));
  fill_store(f);
  assert_ok(model_work_init(&f->config, f->engine, f->store, &f->state, &f->work));
  *state = f;
  return 0;
}

static inline int setup(void **state)
{
  return setup_with(state, false);
}

static inline int teardown(void **state)
{
  struct fixture *f = *state;

  model_work_fini(&f->work);
  model_state_fini(&f->state);
  store_close(&f->store);
  engine_close(&f->engine);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

/* ---- Asking for things ---- */

static inline void add(struct fixture *f, uint32_t generation, size_t file, const char *digest)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.path = span_of_str(f->models[file]);
  change.digest = span_of_str(digest);
  assert_ok(model_state_apply(&f->state, &change));
}

static inline void retire(struct fixture *f, uint32_t generation)
{
  struct model_change change = { .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = generation };

  assert_ok(model_state_apply(&f->state, &change));
}

/* Add a generation that uses the parts of another one. */
static inline void derive(struct fixture *f, uint32_t generation, size_t file, uint32_t from)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.path = span_of_str(f->models[file]);
  change.digest = span_of_str(f->digests[file]);
  change.derives_from = from;
  assert_ok(model_state_apply(&f->state, &change));
}

static inline void retire_derived(struct fixture *f, uint32_t generation, uint32_t from)
{
  struct model_change change = { .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = generation };

  change.derives_from = from;
  assert_ok(model_state_apply(&f->state, &change));
}

static inline void switch_to(struct fixture *f, const uint32_t *generations, size_t n)
{
  struct model_switch history[4];
  struct model_change change = {
    .kind = MODEL_SWITCHES, .space = span_of_str("books"), .switches = history, .n_switches = n
  };

  for (size_t i = 0; i < n; i++)
    history[i] = (struct model_switch){ generations[i], (int64_t)i };
  assert_ok(model_state_apply(&f->state, &change));
}

/* ---- Looking ---- */

static const struct model_entry *entry(const struct fixture *f, uint32_t generation)
{
  return model_entries_find(&f->work.entries, 0, generation);
}

/* Take steps until the generation is in this phase. */
static inline void step_to(struct fixture *f, uint32_t generation, enum model_phase phase, bool may_fill)
{
  int64_t end_ns = clock_now_ns() + 60 * CLOCK_NS_PER_S;
  const struct model_entry *removed;
  bool is_busy;

  do {
    assert_ok(model_work_step(&f->work, may_fill, &is_busy, &removed));
    assert_true(clock_now_ns() < end_ns);
  } while (!entry(f, generation) || entry(f, generation)->phase != phase);
}

static inline bool find_info(const struct fixture *f, uint32_t generation, struct engine_space_info *out)
{
  for (size_t i = 0; i < engine_n_spaces(f->engine); i++) {
    if (engine_space_get(f->engine, i, out) && out->generation == generation)
      return true;
  }
  return false;
}

static inline void assert_current(const struct fixture *f, uint32_t generation)
{
  struct engine_space_info info;

  assert_int_equal(f->work.current[0], generation);
  assert_true(find_info(f, generation, &info) && info.is_current);
}

static inline void assert_items(const struct fixture *f, uint32_t generation, uint64_t n)
{
  struct engine_space_info info;

  assert_true(find_info(f, generation, &info));
  assert_int_equal(info.n_items, n);
}

static inline struct item_change read_item(const struct fixture *f, const char *key, struct region *region)
{
  struct item_change item;
  bool is_found;

  assert_ok(store_read_item(f->store, span_of_str(key), SIZE_MAX, region, &is_found, &item));
  assert_true(is_found);
  return item;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
