/* SPDX-License-Identifier: Apache-2.0 */
/* The fold of control records: what each change does, and that compaction and the order of keys change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/models/model_state.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct model_change add(const char *space, uint32_t generation, const char *path)
{
  return (struct model_change){ .kind = MODEL_ADD,
                                .space = span_of_str(space),
                                .generation = generation,
                                .digest = span_of_str(DIGEST_A),
                                .path = span_of_str(path) };
}

static struct model_change of_kind(enum model_change_kind kind, const char *space, uint32_t generation)
{
  return (struct model_change){ .kind = kind, .space = span_of_str(space), .generation = generation };
}

static struct model_change switches(const char *space, const struct model_switch *v, size_t n)
{
  return (struct model_change){ .kind = MODEL_SWITCHES, .space = span_of_str(space), .switches = v, .n_switches = n };
}

static void apply(struct model_state *s, struct model_change change)
{
  assert_ok(model_state_apply(s, &change));
}

static void a_generation_is_current_from_its_switch_until_the_next_one(void **state)
{
  static const struct model_switch history[] = { { 2, 100 }, { 3, 200 }, { 2, 200 }, { 1, 300 } };
  struct model_state s = { 0 };
  struct span books = span_of_str("books");

  (void)state;
  assert_int_equal(model_state_at(&s, books, INT64_MAX), 1);
  apply(&s, switches("books", history, 4));
  assert_int_equal(model_state_at(&s, books, INT64_MIN), 1);
  assert_int_equal(model_state_at(&s, books, 99), 1);
  assert_int_equal(model_state_at(&s, books, 100), 2);
  assert_int_equal(model_state_at(&s, books, 199), 2);
  assert_int_equal(model_state_at(&s, books, 200), 2);
  assert_int_equal(model_state_at(&s, books, 300), 1);
  assert_int_equal(model_state_at(&s, span_of_str("book"), 150), 1);
  apply(&s, of_kind(MODEL_FORGET, "books", 0));
  assert_int_equal(model_state_at(&s, books, 150), 1);
  model_state_fini(&s);
}

static void a_generation_is_written_again_as_it_was_read(void **state)
{
  struct model_change change = add("books", 2, "/m/2"), again;
  struct model_state s = { 0 };

  (void)state;
  change.derives_from = 1;
  change.shadow = 0.25;
  apply(&s, change);
  const struct model_space *books = model_state_find(&s, span_of_str("books"));
  again = model_state_record(books, model_state_generation(books, 2));
  assert_int_equal(again.kind, MODEL_ADD);
  assert_true(span_equal(again.space, change.space) && again.generation == 2);
  assert_true(span_equal(again.path, change.path) && span_equal(again.digest, change.digest));
  assert_int_equal(again.derives_from, 1);
  assert_float_equal(again.shadow, 0.25, 0);
  change.is_in_topic = true;
  change.n_bytes = 77;
  change.shadow = 0;
  apply(&s, change);
  again = model_state_record(books, model_state_generation(books, 2));
  assert_true(again.is_in_topic && again.n_bytes == 77 && again.path.n == 0);
  assert_float_equal(model_state_generation(books, 2)->shadow, 0, 0);
  model_state_fini(&s);
}

static void a_later_record_of_a_generation_replaces_the_earlier_one(void **state)
{
  struct model_state s = { 0 };

  (void)state;
  apply(&s, add("books", 3, "/m/3"));
  apply(&s, add("books", 2, "/m/2"));
  apply(&s, add("books", 2, "/m/2b"));
  const struct model_space *books = model_state_find(&s, span_of_str("books"));
  assert_non_null(books);
  assert_int_equal(books->n_generations, 2);
  assert_string_equal(model_state_generation(books, 2)->path, "/m/2b");
  assert_string_equal(model_state_generation(books, 3)->digest, DIGEST_A);
  assert_null(model_state_generation(books, 4));
  apply(&s, of_kind(MODEL_RETIRE, "books", 2));
  assert_true(model_state_is_retired(&s, span_of_str("books"), 2));
  assert_null(model_state_generation(books, 2)->path);
  assert_false(model_state_is_retired(&s, span_of_str("books"), 3));
  apply(&s, add("books", 2, "/m/2c"));
  assert_false(model_state_is_retired(&s, span_of_str("books"), 2));
  apply(&s, of_kind(MODEL_FORGET, "books", 2));
  apply(&s, of_kind(MODEL_FORGET, "books", 9));
  assert_null(model_state_generation(books, 2));
  assert_null(model_state_generation(model_state_find(&s, span_of_str("films")), 2));
  model_state_fini(&s);
}

static struct model_change derived(struct model_change change, uint32_t from)
{
  change.derives_from = from;
  return change;
}

static void a_derived_generation_has_the_parts_of_its_root(void **state)
{
  struct span books = span_of_str("books");
  struct model_state s = { 0 };

  (void)state;
  assert_int_equal(model_state_root(&s, books, 2), 2);
  apply(&s, derived(add("books", 4, "/m/4"), 3)); /* its root comes later */
  assert_int_equal(model_state_root(&s, books, 4), 3);
  assert_true(model_state_lacks_root(model_state_find(&s, books), 4));
  apply(&s, derived(add("books", 3, "/m/3"), 1));
  apply(&s, add("books", 5, "/m/5"));
  assert_int_equal(model_state_root(&s, books, 3), 1);
  assert_int_equal(model_state_root(&s, books, 4), 1);
  assert_false(model_state_lacks_root(model_state_find(&s, books), 4));
  assert_int_equal(model_state_root(&s, books, 5), 5);
  assert_int_equal(model_state_root(&s, span_of_str("films"), 3), 3);
  assert_false(model_state_lacks_root(NULL, 3));
  model_state_fini(&s);
}

static void parts_are_used_until_the_last_generation_of_their_root_is_retired(void **state)
{
  struct span books = span_of_str("books");
  struct model_state s = { 0 };

  (void)state;
  assert_true(model_state_uses_parts(&s, books, 1));
  apply(&s, derived(add("books", 2, "/m/2"), 1));
  apply(&s, derived(add("books", 3, "/m/3"), 1));
  apply(&s, of_kind(MODEL_RETIRE, "books", 1));
  apply(&s, derived(of_kind(MODEL_RETIRE, "books", 2), 1));
  assert_true(model_state_uses_parts(&s, books, 1));
  assert_int_equal(model_state_root(&s, books, 2), 1); /* records of the time when it was current still name it */
  apply(&s, derived(of_kind(MODEL_RETIRE, "books", 3), 1));
  assert_false(model_state_uses_parts(&s, books, 1));
  apply(&s, derived(add("books", 4, "/m/4"), 1));
  assert_true(model_state_uses_parts(&s, books, 1));
  apply(&s, derived(add("books", 4, "/m/4"), 3)); /* 3 derives from 1 */
  assert_true(model_state_uses_parts(&s, books, 1));
  apply(&s, of_kind(MODEL_FORGET, "books", 3)); /* its next record may say so again */
  assert_true(model_state_uses_parts(&s, books, 1));
  apply(&s, add("books", 3, "/m/3"));
  assert_false(model_state_uses_parts(&s, books, 1));
  model_state_fini(&s);
}

/* ---- Compaction ---- */

enum { KEYS = 9, RECORDS = 60 };

/* Key k is about switches if it is a multiple of 3. */
static struct model_change draw(struct dice *dice, uint32_t k)
{
  static const char *const spaces[] = { "books", "a", "films" };
  static const char *const paths[] = { "/m/a", "/m/b", "/m/c" };
  static const struct model_switch history[] = { { 2, 10 }, { 3, 20 }, { 1, 30 } };
  const char *space = spaces[k / 3];

  if (k % 3 == 0)
    return dice_below(dice, 8) ? switches(space, history, 1 + dice_below(dice, 3)) : of_kind(MODEL_FORGET, space, 0);
  switch (dice_below(dice, 4)) {
  case 0:
    return derived(of_kind(MODEL_RETIRE, space, 1 + k % 3), (uint32_t)dice_below(dice, 1 + k % 3));
  case 1:
    return of_kind(MODEL_FORGET, space, 1 + k % 3);
  default:
    return derived(add(space, 1 + k % 3, paths[dice_below(dice, 3)]), (uint32_t)dice_below(dice, 1 + k % 3));
  }
}

static void assert_same_generation(const struct model_generation *a, const struct model_generation *b)
{
  assert_int_equal(a == NULL, b == NULL);
  if (!a)
    return;
  assert_int_equal(a->is_retired, b->is_retired);
  assert_string_equal(a->digest, b->digest);
  assert_int_equal(a->path == NULL, b->path == NULL);
  if (a->path)
    assert_string_equal(a->path, b->path);
}

static void assert_same(const struct model_state *a, const struct model_state *b)
{
  static const char *const spaces[] = { "books", "a", "films" };

  for (size_t i = 0; i < 3; i++) {
    struct span space = span_of_str(spaces[i]);
    for (int64_t time_ms = 0; time_ms <= 40; time_ms += 5)
      assert_int_equal(model_state_at(a, space, time_ms), model_state_at(b, space, time_ms));
    for (uint32_t g = 1; g <= 4; g++)
      assert_same_generation(model_state_generation(model_state_find(a, space), g),
                             model_state_generation(model_state_find(b, space), g));
    for (uint32_t g = 1; g <= 4; g++)
      assert_int_equal(model_state_root(a, space, g), model_state_root(b, space, g));
  }
}

static void compaction_at_any_place_leaves_the_same_state(void **state)
{
  struct dice dice = { dice_seed() };

  (void)state;
  for (size_t round = 0; round < 200; round++) {
    struct model_change records[RECORDS];
    uint32_t keys[RECORDS];
    size_t n_compacted = dice_below(&dice, RECORDS + 1);
    struct model_state whole = { 0 }, compacted = { 0 };
    for (size_t i = 0; i < RECORDS; i++) {
      keys[i] = (uint32_t)dice_below(&dice, KEYS);
      records[i] = draw(&dice, keys[i]);
      apply(&whole, records[i]);
    }
    for (size_t i = 0; i < RECORDS; i++) {
      bool is_removed = false;
      for (size_t later = i + 1; later < n_compacted; later++)
        is_removed |= keys[later] == keys[i];
      if (!is_removed)
        apply(&compacted, records[i]);
    }
    assert_same(&whole, &compacted);
    model_state_fini(&whole);
    model_state_fini(&compacted);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_generation_is_current_from_its_switch_until_the_next_one),
    cmocka_unit_test(a_generation_is_written_again_as_it_was_read),
    cmocka_unit_test(a_later_record_of_a_generation_replaces_the_earlier_one),
    cmocka_unit_test(a_derived_generation_has_the_parts_of_its_root),
    cmocka_unit_test(parts_are_used_until_the_last_generation_of_their_root_is_retired),
    cmocka_unit_test(compaction_at_any_place_leaves_the_same_state),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
