/* SPDX-License-Identifier: Apache-2.0 */
/* When the index of a generation is built: after a fill, once no parts pour in any more, and before it answers. */
#include "daemon/models/model_index.h"

#include "engine/engine_spaces.h"
#include "tests/support/model_work_fixture.h"

enum { STEPS_MAX = 100 };

static int setup_codes(void **state)
{
  return setup_with(state, true);
}

static bool has_index(const struct fixture *f, uint32_t generation)
{
  return !engine_lacks_index(f->engine, span_of_str("books"), generation);
}

static struct index_watch *watch_of(const struct fixture *f)
{
  return &model_entries_find(&f->work.entries, 0, 2)->index;
}

/* Add generation 2, whose parts are still to come. */
static void add_without_parts(struct fixture *f)
{
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_items(f, 2, 0);
}

static struct span key_of(size_t i, char text[8])
{
  return span_of(text, (size_t)snprintf(text, 8, "%05zu", i));
}

/* Parts of generation 2 come for the first n items. */
static void pour(struct fixture *f, size_t n)
{
  struct part part = make_part(f, "books@2", 2);
  struct item_change change = { .parts = &part, .n_parts = 1 };
  char key[8];

  for (size_t i = 0; i < n; i++) {
    change.key = key_of(i, key);
    assert_ok(engine_apply(f->engine, &change, 1, NULL, 0));
  }
}

/* Take a step. Returns whether there is more to do. */
static bool step(struct fixture *f)
{
  const struct model_entry *removed;
  bool is_busy;

  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  return is_busy;
}

/* Take a step after a second of waiting. */
static bool look(struct fixture *f)
{
  watch_of(f)->look_due_ns = 0;
  return step(f);
}

/* The same after a minute in which no parts poured in. */
static bool look_later(struct fixture *f)
{
  watch_of(f)->poured_ns -= 60 * CLOCK_NS_PER_S;
  return look(f);
}

static void step_to_the_end(struct fixture *f)
{
  int n = 0;

  while (step(f))
    assert_true(++n < STEPS_MAX);
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
  size_t n;

  add_without_parts(f);
  assert_false(look(f));
  for (n = 1000; n < 4000; n += 500) {
    pour(f, n);
    watch_of(f)->poured_ns -= 60 * CLOCK_NS_PER_S;
    assert_false(look(f));
  }
  pour(f, n + n / 64 + 1); /* still more than a sixty-fourth of those before */
  assert_false(look_later(f));
  pour(f, n + n / 64 + 10);
  assert_false(look(f)); /* perhaps the producer only pauses */
  assert_false(has_index(f, 2));
  assert_true(look_later(f));
  step_to_the_end(f);
  assert_true(has_index(f, 2));
}

/* A few are sent to try the generation, before the others are made. */
static void the_index_waits_for_most_parts(void **state)
{
  struct fixture *f = *state;

  add_without_parts(f);
  pour(f, ITEMS / 2 - 1);
  assert_false(look(f));
  assert_false(look_later(f));
  assert_false(has_index(f, 2));
  pour(f, ITEMS / 2);
  assert_true(look_later(f));
  step_to_the_end(f);
  assert_true(has_index(f, 2));
}

static void a_fill_without_most_parts_leaves_the_index_for_later(void **state)
{
  struct fixture *f = *state;
  struct part part = make_part(f, "books@2", 2);
  struct item_change change = { .parts = &part, .n_parts = 1, .offset = ITEMS };
  char key[8];

  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  for (size_t i = 0; i < ITEMS / 2 - 1; i++) {
    change.key = key_of(i, key);
    assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  }
  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_READY, true);
  assert_items(f, 2, ITEMS / 2 - 1);
  assert_false(has_index(f, 2));
}

static void a_switch_waits_for_the_index(void **state)
{
  struct fixture *f = *state;
  int n = 0;

  add_without_parts(f);
  pour(f, 100);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  do {
    assert_true(f->work.current[0] == 1 || has_index(f, 2));
    assert_true(++n < STEPS_MAX);
  } while (step(f));
  assert_true(n > 2); /* two pairs of splits in two arenas */
  assert_current(f, 2);
}

/* A generation is retired while its index is being built, which begins when all parts are there. */
static void an_unfinished_index_leaves_with_its_generation(void **state)
{
  struct fixture *f = *state;
  struct engine_space_info info;

  add_without_parts(f);
  pour(f, ITEMS - ITEMS / 1000 - 1);
  assert_false(look(f));
  pour(f, ITEMS);
  assert_true(look(f));
  assert_false(has_index(f, 2));
  retire(f, 2);
  step_to(f, 2, MODEL_REMOVED, true);
  assert_false(find_info(f, 2, &info));
  assert_false(step(f));
}

/* All items have a part of generation 1, and the first *n one of generation 2. */
static err_code_t feed_items(void *n, struct engine_loading *loading)
{
  AUTO(region_fini) struct region scratch = { 0 };
  static const uint8_t codes[4] = { 1, 2, 3, 0 };
  struct part parts[] = { { .space = span_of_str("books"), .codes = { codes, 2 } },
                          { .space = span_of_str("books@2"), .codes = { codes, 4 } } };
  struct item_change change = { .parts = parts };
  char key[8];

  for (size_t i = 0; i < ITEMS; i++) {
    change.key = key_of(i, key);
    change.n_parts = i < *(const size_t *)n ? 2 : 1;
    TRY(engine_loading_put(loading, &scratch, i, &change, 1));
  }
  return ERR_OK;
}

static void a_load_builds_the_indexes_of_generations_with_most_parts(void **state)
{
  struct fixture *f = *state;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_FILLING, false);
  for (size_t n = ITEMS / 2 - 1; n <= ITEMS / 2; n++) {
    assert_ok(engine_replace(f->engine, feed_items, &n, 2, NULL, 0));
    assert_true(has_index(f, 1));
    assert_int_equal(has_index(f, 2), n >= ITEMS / 2);
    assert_items(f, 2, n);
  }
}

static void a_load_builds_the_index_of_the_generation_that_should_answer(void **state)
{
  struct fixture *f = *state;
  size_t n = 1;

  add(f, 2, 1, f->digests[1]);
  step_to(f, 2, MODEL_FILLING, false);
  switch_to(f, (const uint32_t[]){ 2 }, 1);
  assert_ok(engine_replace(f->engine, feed_items, &n, 2, NULL, 0));
  assert_false(has_index(f, 2));
  assert_ok(model_work_note_loaded(&f->work));
  assert_true(has_index(f, 2));
  assert_current(f, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_filled_generation_has_its_index_before_it_answers, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(the_index_waits_while_parts_pour_in, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(the_index_waits_for_most_parts, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_fill_without_most_parts_leaves_the_index_for_later, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_switch_waits_for_the_index, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(an_unfinished_index_leaves_with_its_generation, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_load_builds_the_indexes_of_generations_with_most_parts, setup_codes, teardown),
    cmocka_unit_test_setup_teardown(a_load_builds_the_index_of_the_generation_that_should_answer, setup_codes,
                                    teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
