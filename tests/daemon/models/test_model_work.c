/* SPDX-License-Identifier: Apache-2.0 */
/* The work on generations, step by step: with a real engine and a real store, and without Kafka. */
#include "daemon/models/model_work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/errand.h"
#include "daemon/models/model_fill.h"
#include "store/model_files.h"
#include "tests/support/assert_ok.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

/* A sanitizer needs more address space than a limit would leave. gcc and clang announce it in different ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SANITIZER 0
#endif

enum { ITEMS = 5000, GENERATIONS = 4 };

struct fixture {
  struct temp_dir dir;
  char models[GENERATIONS][PATH_MAX]; /* of generations 1, 2 and 3 with different dimensions, and a damaged one */
  char digests[GENERATIONS][65];
  struct config_space space;
  struct config config;
  struct engine *engine;
  struct store *store;
  struct model_state state;
  struct model_work work;
};

/* Generation g has vectors of g numbers. */
static void make_models(struct fixture *f)
{
  for (size_t g = 0; g < GENERATIONS - 1; g++) {
    struct engine_space space = { .name = "books", .model_path = f->models[g] };
    struct engine_model *model = NULL;
    snprintf(f->models[g], PATH_MAX, "%s/%zu", f->dir.path, g + 1);
    vector_file_write_plain(f->models[g], "dot", g + 1);
    assert_ok(engine_load_model(&space, &model));
    snprintf(f->digests[g], sizeof f->digests[g], "%s", engine_model_digest(model));
    engine_model_close(&model);
  }
  snprintf(f->models[GENERATIONS - 1], PATH_MAX, "%s/none", f->dir.path);
}

/* Each item has a part of each of the generations 1 to 3. */
static void fill_store(struct fixture *f)
{
  static const float numbers[] = { 1, 2, 3 };
  static const char *const names[] = { "books", "books@2", "books@3" };
  static struct item_change changes[ITEMS];
  static char keys[ITEMS][8];
  struct part parts[3];

  for (size_t i = 0; i < 3; i++)
    parts[i] = (struct part){ .space = span_of_str(names[i]), .vector = { numbers, i + 1 } };
  for (size_t i = 0; i < ITEMS; i++) {
    size_t n = (size_t)snprintf(keys[i], sizeof keys[i], "%05zu", i);
    changes[i] = (struct item_change){ .key = span_of(keys[i], n), .parts = parts, .n_parts = 3, .offset = (int64_t)i };
  }
  assert_ok(store_apply(f->store, changes, ITEMS, NULL, 0, NULL));
  for (size_t i = 0; i < ITEMS; i++)
    changes[i].n_parts = 1;
  assert_ok(engine_apply(f->engine, changes, ITEMS, NULL, 0));
}

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);
  char path[PATH_MAX + 8];

  assert_non_null(f);
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

static int teardown(void **state)
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

static void add(struct fixture *f, uint32_t generation, size_t file, const char *digest)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.path = span_of_str(f->models[file]);
  change.digest = span_of_str(digest);
  assert_ok(model_state_apply(&f->state, &change));
}

static void retire(struct fixture *f, uint32_t generation)
{
  struct model_change change = { .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = generation };

  assert_ok(model_state_apply(&f->state, &change));
}

/* Add a generation that uses the parts of another one. */
static void derive(struct fixture *f, uint32_t generation, size_t file, uint32_t from)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.path = span_of_str(f->models[file]);
  change.digest = span_of_str(f->digests[file]);
  change.derives_from = from;
  assert_ok(model_state_apply(&f->state, &change));
}

static void retire_derived(struct fixture *f, uint32_t generation, uint32_t from)
{
  struct model_change change = { .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = generation };

  change.derives_from = from;
  assert_ok(model_state_apply(&f->state, &change));
}

static void switch_to(struct fixture *f, const uint32_t *generations, size_t n)
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
static void step_to(struct fixture *f, uint32_t generation, enum model_phase phase, bool may_fill)
{
  int64_t end_ns = clock_now_ns() + 60 * CLOCK_NS_PER_S;
  const struct model_entry *removed;
  bool is_busy;

  do {
    assert_ok(model_work_step(&f->work, may_fill, &is_busy, &removed));
    assert_true(clock_now_ns() < end_ns);
  } while (!entry(f, generation) || entry(f, generation)->phase != phase);
}

static bool find_info(const struct fixture *f, uint32_t generation, struct engine_space_info *out)
{
  for (size_t i = 0; i < engine_n_spaces(f->engine); i++) {
    if (engine_space_get(f->engine, i, out) && out->generation == generation)
      return true;
  }
  return false;
}

static void assert_current(const struct fixture *f, uint32_t generation)
{
  struct engine_space_info info;

  assert_int_equal(f->work.current[0], generation);
  assert_true(find_info(f, generation, &info) && info.is_current);
}

static void assert_items(const struct fixture *f, uint32_t generation, uint64_t n)
{
  struct engine_space_info info;

  assert_true(find_info(f, generation, &info));
  assert_int_equal(info.n_items, n);
}

static struct item_change read_item(const struct fixture *f, const char *key, struct region *region)
{
  struct item_change item;
  bool is_found;

  assert_ok(store_read_item(f->store, span_of_str(key), SIZE_MAX, region, &is_found, &item));
  assert_true(is_found);
  return item;
}

/* ---- Cases ---- */

static void a_generation_gets_the_parts_that_the_store_has_and_answers_only_then(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_FILLING, false);
  assert_items(f, 2, 0);
  assert_current(f, 1);
  step_to(f, 2, MODEL_READY, true);
  assert_items(f, 2, ITEMS);
  assert_int_equal(entry(f, 2)->n_filled, ITEMS);
  assert_current(f, 2);
  switch_to(f, (const uint32_t[]){ 2, 1 }, 2);
  step_to(f, 2, MODEL_READY, true);
  assert_current(f, 1);
}

static void what_cannot_be_used_fails_with_the_reason_and_the_former_generation_answers(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 3, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_FAILED, true);
  assert_non_null(strstr(entry(f, 2)->problem, "/none"));
  assert_current(f, 1);
  add(f, 2, 2, f->digests[1]);
  step_to(f, 2, MODEL_FAILED, true);
  assert_non_null(strstr(entry(f, 2)->problem, f->digests[1]));
  add(f, 2, 1, f->digests[1]); /* another record is another attempt */
  step_to(f, 2, MODEL_READY, true);
  assert_string_equal(entry(f, 2)->problem, "");
  assert_current(f, 2);
}

/* The file is a hole of 64 GiB, of which nothing is read. */
static void a_model_without_memory_to_load_it_fails_and_nothing_else(void **state)
{
  const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY }, low = { UINT64_C(32) << 30, RLIM_INFINITY };
  struct fixture *f = *state;

  if (HAS_SANITIZER)
    skip();
  snprintf(f->models[3], PATH_MAX, "%s/large", f->dir.path);
  FILE *file = fopen(f->models[3], "wb");
  assert_non_null(file);
  assert_int_equal(ftruncate(fileno(file), INT64_C(64) << 30), 0);
  fclose(file);
  assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
  add(f, 2, 3, f->digests[1]);
  step_to(f, 2, MODEL_FAILED, true);
  assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
  assert_non_null(strstr(entry(f, 2)->problem, "does not fit into memory"));
  assert_current(f, 1);
}

static void a_loaded_generation_keeps_its_model(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  add(f, 2, 2, f->digests[2]);
  step_to(f, 2, MODEL_READY, true);
  assert_non_null(strstr(entry(f, 2)->problem, "another model"));
  assert_items(f, 2, ITEMS);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_string_equal(entry(f, 2)->problem, "");
}

/* The parts of generation 3 are given to a model of two numbers. */
static void parts_that_do_not_fit_the_model_are_counted_and_left_out(void **state)
{
  struct fixture *f = *state;

  add(f, 3, 1, f->digests[1]);
  step_to(f, 3, MODEL_READY, true);
  assert_int_equal(entry(f, 3)->n_unusable, ITEMS);
  assert_non_null(strstr(entry(f, 3)->problem, "00000"));
  assert_items(f, 3, 0);
}

static void a_retired_generation_leaves_the_engine_and_the_store(void **state)
{
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };
  struct engine_space_info info;

  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 1);
  step_to(f, 1, MODEL_REMOVED, true);
  assert_false(find_info(f, 1, &info));
  const struct item_change item = read_item(f, "04999", &region);
  assert_int_equal(item.n_parts, 2);
  assert_true(span_equal(item.parts[0].space, span_of_str("books@2")));
}

/* Records that were read before the generation was retired may be in the second catalogue already. */
static void parts_are_deleted_when_no_second_catalogue_is_being_built(void **state)
{
  static const float numbers[] = { 1, 2 };
  struct part parts[] = { { .space = span_of_str("books"), .vector = { numbers, 1 } },
                          { .space = span_of_str("books@2"), .vector = { numbers, 2 } } };
  struct item_change change = { .key = span_of_str("new"), .parts = parts, .n_parts = 2 };
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };
  const struct model_entry *removed;
  bool is_busy = true;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_ok(store_begin_rebuild(f->store));
  assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  retire(f, 2);
  for (int i = 0; i < ITEMS; i++)
    assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(entry(f, 2)->phase, MODEL_REMOVING);
  assert_false(is_busy);
  assert_ok(store_finish_rebuild(f->store));
  step_to(f, 2, MODEL_REMOVED, true);
  assert_int_equal(read_item(f, "new", &region).n_parts, 1);
}

static void a_retired_generation_that_is_added_again_is_loaded_again(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_items(f, 2, 0);
}

/* A process before this one has deleted its parts, and then the retirement was forgotten. */
static void parts_that_came_after_a_forgotten_retirement_are_deleted_by_the_next_one(void **state)
{
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };

  assert_ok(model_work_note_removed(&f->work, span_of_str("books"), 1));
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 1);
  step_to(f, 1, MODEL_REMOVED, true);
  assert_int_equal(read_item(f, "04999", &region).n_parts, 2);
}

/* The configured generation is loaded at every start; by then it may have been retired long ago. */
static void a_start_leaves_the_retired_generation_behind_before_the_first_query(void **state)
{
  struct fixture *f = *state;
  struct engine_space_info info;

  assert_ok(model_work_note_removed(&f->work, span_of_str("books"), 1));
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  retire(f, 1);
  step_to(f, 2, MODEL_FILLING, false);
  assert_int_equal(entry(f, 1)->phase, MODEL_READY);
  assert_ok(model_work_note_loaded(&f->work));
  assert_current(f, 2);
  assert_int_equal(entry(f, 1)->phase, MODEL_REMOVED);
  assert_false(find_info(f, 1, &info));
}

static void a_current_generation_that_is_retired_gives_way_to_the_switch_before_it(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  add(f, 3, 2, f->digests[2]);
  switch_to(f, (const uint32_t[]){ 2, 3 }, 2);
  step_to(f, 2, MODEL_READY, true);
  step_to(f, 3, MODEL_READY, true);
  assert_current(f, 3);
  retire(f, 3);
  step_to(f, 3, MODEL_REMOVED, true);
  assert_current(f, 2);
  retire(f, 1);
  step_to(f, 1, MODEL_REMOVED, true);
  retire(f, 2); /* there is no other one: it goes on answering */
  step_to(f, 2, MODEL_READY, true);
  assert_current(f, 2);
  assert_items(f, 2, ITEMS);
}

static void steps_grow_until_one_takes_long(void **state)
{
  size_t n = FILL_ITEMS_MIN;

  (void)state;
  for (int i = 0; i < 10; i++)
    n = model_fill_pace(n, FILL_ITEMS_MAX, 1);
  assert_int_equal(n, FILL_ITEMS_MAX);
  assert_int_equal(model_fill_pace(n, FILL_ITEMS_MAX, 200), n);
  for (int i = 0; i < 10; i++)
    n = model_fill_pace(n, FILL_ITEMS_MAX, 1000);
  assert_int_equal(n, FILL_ITEMS_MIN);
}

/* Nothing waits for the load, and nothing of it is lost: see the leak sanitizer. */
static void work_ends_while_a_model_is_being_loaded(void **state)
{
  struct fixture *f = *state;
  const struct model_entry *removed;
  bool is_busy;

  add(f, 2, 1, f->digests[1]);
  assert_ok(model_work_step(&f->work, false, &is_busy, &removed));
  assert_true(f->work.loading.is_under_way);
  model_work_fini(&f->work);
  assert_false(f->work.loading.is_under_way);
  while (errand_n_left() > 0)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_ok(model_work_init(&f->config, f->engine, f->store, &f->state, &f->work));
}

/* The walk of generation 2 has grown its steps, and is given up. */
static void each_walk_begins_with_small_steps(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_FILLING, true);
  assert_int_equal(entry(f, 2)->n_walked, FILL_ITEMS_MIN);
  retire(f, 2);
  add(f, 3, 2, f->digests[2]);
  step_to(f, 3, MODEL_FILLING, true);
  assert_int_equal(entry(f, 3)->n_walked, FILL_ITEMS_MIN);
  retire(f, 3);
  step_to(f, 3, MODEL_REMOVED, true);
  assert_null(f->work.region.first); /* no memory is kept for it */
}

static void begin_to_load(struct fixture *f)
{
  const struct model_entry *removed;
  bool is_busy;

  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_true(f->work.loading.is_under_way);
}

static void another_record_counts_while_the_model_of_the_former_one_is_being_loaded(void **state)
{
  struct fixture *f = *state;
  struct engine_space_info info;

  add(f, 2, 2, f->digests[2]);
  begin_to_load(f);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_string_equal(entry(f, 2)->problem, "");
  assert_true(find_info(f, 2, &info));
  assert_string_equal(info.digest, f->digests[1]);
  assert_int_equal(info.n_items, ITEMS);
}

static void a_generation_that_is_retired_while_it_is_being_loaded_does_not_reach_the_engine(void **state)
{
  struct fixture *f = *state;
  struct engine_epoch before, after;

  add(f, 2, 1, f->digests[1]);
  begin_to_load(f);
  engine_epoch_get(f->engine, &before, NULL, 0);
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  engine_epoch_get(f->engine, &after, NULL, 0);
  assert_int_equal(after.number, before.number);
}

/* ---- Derived generations ---- */

static void a_derived_generation_is_filled_with_the_parts_of_its_root(void **state)
{
  static const float two = 2;
  struct part part = { .space = span_of_str("books"), .vector = { &two, 1 } };
  struct item_change change = { .key = span_of_str("00000"), .parts = &part, .n_parts = 1 };
  struct fixture *f = *state;

  assert_ok(
      engine_apply(f->engine, &(struct item_change){ .key = span_of_str("00000"), .is_delete = true }, 1, NULL, 0));
  derive(f, 4, 0, 1);
  step_to(f, 4, MODEL_READY, true);
  assert_int_equal(entry(f, 4)->n_filled, ITEMS);
  assert_int_equal(entry(f, 4)->n_unusable, 0);
  assert_items(f, 4, ITEMS);
  assert_items(f, 1, ITEMS - 1); /* the fill is for the new one alone */
  assert_ok(engine_apply(f->engine, &change, 1, NULL, 0));
  assert_items(f, 1, ITEMS);
}

static void the_parts_of_a_retired_root_stay_until_nothing_derives_from_it(void **state)
{
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };
  struct engine_space_info info;

  derive(f, 4, 0, 1);
  derive(f, 5, 0, 4); /* its root is 1, too */
  switch_to(f, (const uint32_t[]){ 4 }, 1);
  step_to(f, 4, MODEL_READY, true);
  step_to(f, 5, MODEL_READY, true);
  retire(f, 1);
  step_to(f, 1, MODEL_KEPT, true);
  assert_false(find_info(f, 1, &info));
  retire_derived(f, 5, 1);
  step_to(f, 5, MODEL_REMOVED, true);
  assert_int_equal(entry(f, 1)->phase, MODEL_KEPT);
  assert_int_equal(read_item(f, "04999", &region).n_parts, 3);
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 4, 2 }, 2);
  step_to(f, 2, MODEL_READY, true);
  retire_derived(f, 4, 1);
  step_to(f, 1, MODEL_REMOVED, true);
  region_reset(&region);
  const struct item_change item = read_item(f, "04999", &region);
  assert_int_equal(item.n_parts, 2);
  assert_true(span_equal(item.parts[0].space, span_of_str("books@2")));
  assert_current(f, 2);
}

/* Another generation that derives from the root comes while its parts are being deleted. */
static void what_is_left_of_a_root_stays_when_another_generation_derives_from_it(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 1);
  step_to(f, 1, MODEL_REMOVING, true); /* a step of deletes has been taken */
  derive(f, 4, 0, 1);
  step_to(f, 4, MODEL_READY, true);
  assert_int_equal(entry(f, 1)->phase, MODEL_KEPT);
  assert_true(entry(f, 4)->n_filled > 0 && entry(f, 4)->n_filled < ITEMS);
  retire_derived(f, 4, 1);
  step_to(f, 1, MODEL_REMOVED, true);
  step_to(f, 4, MODEL_REMOVED, true);
}

static void a_model_that_needs_other_parts_than_its_root_fails_with_the_reason(void **state)
{
  struct fixture *f = *state;

  derive(f, 4, 1, 1);
  step_to(f, 4, MODEL_FAILED, true);
  assert_non_null(strstr(entry(f, 4)->problem, "needs a vector of 2 numbers of an item, and a part has a vector of 1"));
  derive(f, 4, 1, 2); /* another record is another attempt */
  step_to(f, 4, MODEL_READY, true);
  assert_items(f, 4, ITEMS);
  derive(f, 4, 1, 1); /* a loaded one keeps its parts */
  step_to(f, 4, MODEL_READY, true);
  assert_non_null(strstr(entry(f, 4)->problem, "or other parts"));
  assert_items(f, 4, ITEMS);
}

static void a_start_after_the_retirement_of_the_root_keeps_its_parts(void **state)
{
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };

  derive(f, 4, 0, 1);
  switch_to(f, (const uint32_t[]){ 4 }, 1);
  retire(f, 1);
  step_to(f, 4, MODEL_FILLING, false);
  assert_ok(model_work_note_loaded(&f->work));
  assert_current(f, 4);
  step_to(f, 1, MODEL_KEPT, true);
  assert_int_equal(read_item(f, "04999", &region).n_parts, 3);
  assert_true(engine_has_space(f->engine, span_of_str("books")));
}

/* It is retired by hand, and there is no other one. */
static void the_parts_of_a_retired_root_stay_while_one_that_derives_from_it_has_to_answer(void **state)
{
  struct fixture *f = *state;
  AUTO(region_fini) struct region region = { 0 };

  derive(f, 4, 0, 1);
  switch_to(f, (const uint32_t[]){ 4 }, 1);
  step_to(f, 4, MODEL_READY, true);
  retire(f, 1);
  retire_derived(f, 4, 1);
  step_to(f, 1, MODEL_KEPT, true);
  assert_current(f, 4);
  assert_int_equal(read_item(f, "04999", &region).n_parts, 3);
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 4, 2 }, 2);
  step_to(f, 1, MODEL_REMOVED, true);
  assert_current(f, 2);
  assert_int_equal(read_item(f, "04999", &region).n_parts, 2);
}

/* At a start, or after a rebuild: all of the generations that use the part refuse it. */
static void a_part_that_no_model_can_use_is_counted_for_each_generation_of_its_root(void **state)
{
  struct fixture *f = *state;

  derive(f, 4, 0, 1);
  derive(f, 5, 0, 1);
  switch_to(f, (const uint32_t[]){ 4 }, 1);
  step_to(f, 5, MODEL_READY, true);
  retire(f, 1);
  step_to(f, 1, MODEL_KEPT, true);
  model_work_note_loading(&f->work);
  model_work_note_unusable(&f->work, span_of_str("books"), span_of_str("a"));
  assert_int_equal(entry(f, 4)->n_unusable, 1);
  assert_int_equal(entry(f, 5)->n_unusable, 1);
  assert_int_equal(entry(f, 1)->n_unusable, 0);
}

/* ---- Files in a topic ---- */

static void add_from_topic(struct fixture *f, uint32_t generation, uint64_t n_bytes)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.digest = span_of_str(f->digests[1]);
  change.is_in_topic = true;
  change.n_bytes = n_bytes;
  assert_ok(model_state_apply(&f->state, &change));
}

/* Put the file of generation 2 where a fetch would. */
static void have_file(struct fixture *f, char path[PATH_MAX])
{
  assert_ok(model_files_make_folder(f->dir.path));
  assert_ok(model_files_path(f->dir.path, f->digests[1], "", path));
  assert_int_equal(link(f->models[1], path), 0);
}

static void assert_swept(struct fixture *f, const char *path)
{
  const struct model_entry *removed;
  bool is_busy;

  assert_int_equal(access(path, F_OK), 0);
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(access(path, F_OK), -1);
}

static void a_file_is_removed_once_no_record_names_it(void **state)
{
  const struct model_change forget = { .kind = MODEL_FORGET, .space = span_of_str("books"), .generation = 2 };
  const struct kafka_layers layers = { 0 };
  struct fixture *f = *state;
  char path[PATH_MAX];

  f->config.store_path = f->dir.path;
  f->config.models.files_topic = "files";
  f->config.models.max_file_bytes = UINT64_MAX;
  model_work_fetch_from(&f->work, &layers);
  have_file(f, path);
  add_from_topic(f, 2, 100);
  step_to(f, 2, MODEL_READY, true);
  assert_ok(model_state_apply(&f->state, &forget));
  assert_swept(f, path);
  have_file(f, path);
  add_from_topic(f, 2, 100);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 2);
  assert_swept(f, path);
}

/* Nobody fetches files here: so it is as if none could be fetched. */
static void a_file_that_cannot_be_fetched_holds_nothing_up(void **state)
{
  struct fixture *f = *state;
  const struct model_entry *removed;
  bool is_busy;

  f->config.store_path = f->dir.path;
  add_from_topic(f, 2, 100);
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(entry(f, 2)->phase, MODEL_WAITING);
  assert_non_null(strstr(entry(f, 2)->problem, "models.files_topic"));
  assert_non_null(strstr(entry(f, 2)->path, f->digests[1]));
  assert_false(model_work_is_loading(&f->work));
  assert_false(is_busy);
  add_from_topic(f, 2, 101); /* another record: it is tried at once */
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(entry(f, 2)->n_bytes, 101);
  assert_int_equal(entry(f, 2)->n_fetch_failures, 1);
  add(f, 2, 1, f->digests[1]); /* now by its path */
  step_to(f, 2, MODEL_READY, true);
  assert_string_equal(entry(f, 2)->problem, "");
  add_from_topic(f, 3, 100);
  retire(f, 3);
  step_to(f, 3, MODEL_REMOVED, true);
  assert_string_equal(entry(f, 3)->problem, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    CASE(a_generation_gets_the_parts_that_the_store_has_and_answers_only_then),
    CASE(what_cannot_be_used_fails_with_the_reason_and_the_former_generation_answers),
    CASE(a_model_without_memory_to_load_it_fails_and_nothing_else),
    CASE(a_loaded_generation_keeps_its_model),
    CASE(parts_that_do_not_fit_the_model_are_counted_and_left_out),
    CASE(a_retired_generation_leaves_the_engine_and_the_store),
    CASE(parts_are_deleted_when_no_second_catalogue_is_being_built),
    CASE(a_retired_generation_that_is_added_again_is_loaded_again),
    CASE(parts_that_came_after_a_forgotten_retirement_are_deleted_by_the_next_one),
    CASE(a_start_leaves_the_retired_generation_behind_before_the_first_query),
    CASE(a_current_generation_that_is_retired_gives_way_to_the_switch_before_it),
    cmocka_unit_test(steps_grow_until_one_takes_long),
    CASE(each_walk_begins_with_small_steps),
    CASE(work_ends_while_a_model_is_being_loaded),
    CASE(another_record_counts_while_the_model_of_the_former_one_is_being_loaded),
    CASE(a_generation_that_is_retired_while_it_is_being_loaded_does_not_reach_the_engine),
    CASE(a_derived_generation_is_filled_with_the_parts_of_its_root),
    CASE(the_parts_of_a_retired_root_stay_until_nothing_derives_from_it),
    CASE(what_is_left_of_a_root_stays_when_another_generation_derives_from_it),
    CASE(a_model_that_needs_other_parts_than_its_root_fails_with_the_reason),
    CASE(a_start_after_the_retirement_of_the_root_keeps_its_parts),
    CASE(the_parts_of_a_retired_root_stay_while_one_that_derives_from_it_has_to_answer),
    CASE(a_part_that_no_model_can_use_is_counted_for_each_generation_of_its_root),
    CASE(a_file_is_removed_once_no_record_names_it),
    CASE(a_file_that_cannot_be_fetched_holds_nothing_up),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
