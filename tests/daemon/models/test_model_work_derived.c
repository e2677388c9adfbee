/* SPDX-License-Identifier: Apache-2.0 */
/* Generations that use the parts of another one: filled with them, and what becomes of the parts when it is retired. */
#include "tests/support/model_work_fixture.h"

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
  switch_to(f, (const uint32_t[]){ 4 }, 1);
  step_to(f, 4, MODEL_READY, true);
  assert_false(model_work_can_wait(&f->work, &change)); /* they are the parts of the one that answers */
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
  add(f, 2, 1, f->digests[1]);
  derive(f, 4, 1, 2); /* another record is another attempt */
  step_to(f, 4, MODEL_READY, true);
  assert_items(f, 4, ITEMS);
  derive(f, 4, 1, 1); /* a loaded one keeps its parts */
  step_to(f, 4, MODEL_READY, true);
  assert_non_null(strstr(entry(f, 4)->problem, "or other parts"));
  assert_items(f, 4, ITEMS);
}

/* The record may name another root, and the parts would depend on when it came. */
static void a_generation_that_derives_from_one_without_a_record_waits_for_it(void **state)
{
  struct fixture *f = *state;

  derive(f, 5, 0, 4);
  step_to(f, 5, MODEL_FAILED, true);
  assert_non_null(strstr(entry(f, 5)->problem, "derives from books@4, of which the control topic has no record"));
  retire(f, 1);
  step_to(f, 1, MODEL_READY, true); /* it has to answer */
  derive(f, 4, 0, 1);
  step_to(f, 5, MODEL_READY, true);
  assert_items(f, 5, ITEMS);
  derive(f, 4, 0, 2); /* there is no record of this one either */
  step_to(f, 5, MODEL_READY, true);
  assert_non_null(strstr(entry(f, 5)->problem, "or other parts"));
  assert_items(f, 5, ITEMS);
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    CASE(a_derived_generation_is_filled_with_the_parts_of_its_root),
    CASE(the_parts_of_a_retired_root_stay_until_nothing_derives_from_it),
    CASE(what_is_left_of_a_root_stays_when_another_generation_derives_from_it),
    CASE(a_model_that_needs_other_parts_than_its_root_fails_with_the_reason),
    CASE(a_generation_that_derives_from_one_without_a_record_waits_for_it),
    CASE(a_start_after_the_retirement_of_the_root_keeps_its_parts),
    CASE(the_parts_of_a_retired_root_stay_while_one_that_derives_from_it_has_to_answer),
    CASE(a_part_that_no_model_can_use_is_counted_for_each_generation_of_its_root),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
