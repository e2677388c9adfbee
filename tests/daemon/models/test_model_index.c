/* SPDX-License-Identifier: Apache-2.0 */
/* When the index of a generation is built: after a fill, once few parts come, or when it answers. */
#include "daemon/models/model_index.h"

#include "engine/engine_spaces.h"
#include "tests/support/model_work_fixture.h"

static int setup_codes(void **state)
{
  return setup_with(state, true);
}

static bool has_index(const struct fixture *f, uint32_t generation)
{
  return engine_has_index(f->engine, span_of_str("books"), generation);
}

/* Delete the stored parts of a generation: they are still to come. */
static void take_parts_back(struct fixture *f, uint32_t generation)
{
  retire(f, generation);
  step_to(f, generation, MODEL_REMOVED, true);
}

/* Parts of generation 2 come for the first n items. */
static void pour(struct fixture *f, size_t n)
{
  struct part part = make_part(f, "books@2", 2);
  struct item_change change = { .parts = &part, .n_parts = 1 };
  char key[8];

  for (size_t i = 0; i < n; i++) {
    change.key = span_of(key, (size_t)snprintf(key, sizeof key, "%05zu", i));
    assert_ok(engine_apply(f->engine, &change, 1, NULL, 0));
  }
}

/* Take steps as a second of waiting would. Returns whether there was something to do. */
static bool look(struct fixture *f)
{
  const struct model_entry *removed;
  bool is_busy;

  model_entries_find(&f->work.entries, 0, 2)->index.look_due_ns = 0;
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  return is_busy;
}

static void a_filled_generation_has_its_index_before_it_answers(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  step_to(f, 2, MODEL_FILLING, true);
  assert_false(has_index(f, 2));
  step_to(f, 2, MODEL_READY, true);
  assert_true(has_index(f, 2));
  assert_current(f, 2);
}

static void the_index_waits_while_parts_pour_in(void **state)
{
  struct fixture *f = *state;

  take_parts_back(f, 2);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  for (size_t n = 0; n <= 500; n += 100) {
    pour(f, n);
    assert_false(look(f));
  }
  pour(f, 500 + 500 / 64 + 1); /* still more than a sixty-fourth */
  assert_false(look(f));
  pour(f, 510);
  while (look(f))
    ;
  assert_true(has_index(f, 2));
  assert_items(f, 2, 510);
}

static void most_parts_may_be_still_to_come_after_a_fill(void **state)
{
  static char keys[ITEMS][8];
  struct fixture *f = *state;
  struct part part = make_part(f, "books@2", 2);
  struct item_change change = { .parts = &part, .n_parts = 1, .offset = ITEMS };

  take_parts_back(f, 2);
  for (size_t i = 0; i < ITEMS / 2 - 1; i++) {
    change.key = span_of(keys[i], (size_t)snprintf(keys[i], sizeof keys[i], "%05zu", i));
    assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  }
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_items(f, 2, ITEMS / 2 - 1);
  assert_false(has_index(f, 2));
  (void)look(f);
  while (look(f)) /* the others do not come */
    ;
  assert_true(has_index(f, 2));
}

static void a_generation_that_answers_waits_for_nothing(void **state)
{
  struct fixture *f = *state;
  const struct model_entry *removed;
  bool is_busy = true;

  take_parts_back(f, 2);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  pour(f, 100);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  while (is_busy)
    assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_current(f, 2);
  assert_true(has_index(f, 2));
}

static err_code_t feed_nothing(void *context, struct engine_filling *filling)
{
  (void)context;
  (void)filling;
  return ERR_OK;
}

static void a_loaded_catalogue_has_all_indexes(void **state)
{
  struct fixture *f = *state;
  const struct model_entry *removed;
  bool is_busy;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_FILLING, false);
  assert_true(!has_index(f, 2));
  assert_ok(engine_replace(f->engine, feed_nothing, NULL, 1, NULL, 0));
  assert_ok(model_work_note_loaded(&f->work));
  assert_true(has_index(f, 2));
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_false(is_busy);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_filled_generation_has_its_index_before_it_answers, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(the_index_waits_while_parts_pour_in, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(most_parts_may_be_still_to_come_after_a_fill, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_generation_that_answers_waits_for_nothing, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_loaded_catalogue_has_all_indexes, setup_codes, teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
