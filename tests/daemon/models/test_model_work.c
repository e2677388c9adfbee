/* SPDX-License-Identifier: Apache-2.0 */
/* The work on generations, step by step: loaded, filled, switched to and removed. */
#include "tests/support/model_work_fixture.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/errand.h"
#include "daemon/models/model_fill.h"

/* A sanitizer needs more address space than a limit would leave. gcc and clang announce it in different ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SANITIZER 0
#endif

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

/* In the history that switch_to() makes, generation 2 was current at the time 0, and from 1 on generation 1 is. */
static void shards_know_who_was_current_even_if_that_is_over_already(void **state)
{
  struct fixture *f = *state;
  struct switch_board board;

  assert_ok(switch_board_init(1, &board));
  f->work.switches = &board;
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2, 1 }, 2);
  step_to(f, 2, MODEL_FILLING, false);
  assert_int_equal(switch_board_at(&board, 0, 0), 0); /* the current one stands in for it */
  step_to(f, 2, MODEL_READY, true);
  assert_current(f, 1);
  assert_int_equal(switch_board_at(&board, 0, 0), 2);
  assert_int_equal(switch_board_at(&board, 0, 1), 0);
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  assert_int_equal(switch_board_at(&board, 0, 0), 0);
  f->work.switches = NULL;
  switch_board_fini(&board);
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

static bool can_wait(struct fixture *f, const char *space)
{
  struct part parts[] = { { .space = span_of_str("books@3") }, { .space = span_of_str(space) } };
  struct item_change change = { .key = span_of_str("any"), .parts = parts, .n_parts = 2 };

  return model_work_can_wait(&f->work, &change);
}

static void changes_wait_if_all_parts_are_of_generations_that_do_not_answer(void **state)
{
  struct attribute_value attribute = { .name = span_of_str("year") };
  struct fixture *f = *state;

  assert_true(can_wait(f, "books@2"));
  assert_true(can_wait(f, "films"));
  assert_true(can_wait(f, "books@two"));
  assert_false(can_wait(f, "books"));
  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_READY, true);
  assert_false(can_wait(f, "books@2"));
  assert_true(can_wait(f, "books"));
  assert_false(model_work_can_wait(&f->work, &(struct item_change){ .is_delete = true }));
  assert_false(model_work_can_wait(&f->work, &(struct item_change){ .is_whole = true })); /* others are dropped */
  assert_false(model_work_can_wait(&f->work, &(struct item_change){ .attributes = &attribute, .n_attributes = 1 }));
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

static void a_removal_counts_the_items_that_it_has_walked(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  assert_int_equal(entry(f, 2)->n_walked, ITEMS);
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    CASE(a_generation_gets_the_parts_that_the_store_has_and_answers_only_then),
    CASE(shards_know_who_was_current_even_if_that_is_over_already),
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
    CASE(changes_wait_if_all_parts_are_of_generations_that_do_not_answer),
    CASE(each_walk_begins_with_small_steps),
    CASE(a_removal_counts_the_items_that_it_has_walked),
    CASE(work_ends_while_a_model_is_being_loaded),
    CASE(another_record_counts_while_the_model_of_the_former_one_is_being_loaded),
    CASE(a_generation_that_is_retired_while_it_is_being_loaded_does_not_reach_the_engine),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
