/* SPDX-License-Identifier: Apache-2.0 */
/* Names of parts: a plain one means the generation that was current at the record's time, whenever it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/models/part_names.h"
#include "tests/support/assert_ok.h"

static struct region region;

/* Books is switched to 2 at 100, and back at 200; generation 3 is retired. */
static void make_state(struct model_state *s)
{
  static const struct model_switch history[] = { { 2, 100 }, { 1, 200 } };
  struct model_change change = {
    .kind = MODEL_SWITCHES, .space = span_of_str("books"), .switches = history, .n_switches = 2
  };

  *s = (struct model_state){ 0 };
  assert_ok(model_state_apply(s, &change));
  change = (struct model_change){ .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = 3 };
  assert_ok(model_state_apply(s, &change));
}

static err_code_t resolve(const struct model_state *s, int64_t time_ms, const char *const *names, size_t n,
                          struct part *parts)
{
  struct item_change change = { .parts = parts, .n_parts = n, .timestamp_ms = time_ms };

  for (size_t i = 0; i < n; i++)
    parts[i] = (struct part){ .space = span_of_str(names[i]) };
  region_reset(&region);
  return part_names_resolve(s, &region, &change);
}

static void assert_name(const struct model_state *s, int64_t time_ms, const char *name, const char *due)
{
  struct part part;

  assert_ok(resolve(s, time_ms, &name, 1, &part));
  if (!span_equal(part.space, span_of_str(due)))
    fail_msg("%s at %lld is %.*s, not %s", name, (long long)time_ms, (int)part.space.n, (const char *)part.space.p,
             due);
}

static void a_plain_name_means_the_generation_of_the_records_time(void **state)
{
  struct model_state s;

  (void)state;
  make_state(&s);
  assert_name(&s, 99, "books", "books");
  assert_name(&s, 100, "books", "books@2");
  assert_name(&s, 199, "books", "books@2");
  assert_name(&s, 200, "books", "books");
  assert_name(&s, 150, "films", "films");
  model_state_fini(&s);
}

static void a_name_with_a_generation_means_it_at_any_time(void **state)
{
  struct model_state s;

  (void)state;
  make_state(&s);
  assert_name(&s, 150, "books@1", "books");
  assert_name(&s, 50, "books@2", "books@2");
  assert_name(NULL, 50, "books@1", "books");
  assert_name(NULL, 50, "books", "books");
  assert_name(&s, 150, "books@x", "books@x");
  assert_true(part_names_is_retired(&s, span_of_str("books@3")));
  assert_false(part_names_is_retired(&s, span_of_str("books@2")));
  assert_false(part_names_is_retired(&s, span_of_str("books")));
  assert_false(part_names_is_retired(NULL, span_of_str("books@3")));
  model_state_fini(&s);
}

/* Generation 4 derives from 1, and 6 from 5. Books is switched to 4 at 300, and to 6 at 400. */
static void derive_some(struct model_state *s)
{
  static const struct model_switch history[] = { { 2, 100 }, { 1, 200 }, { 4, 300 }, { 6, 400 } };
  struct model_change change = {
    .kind = MODEL_SWITCHES, .space = span_of_str("books"), .switches = history, .n_switches = 4
  };

  make_state(s);
  assert_ok(model_state_apply(s, &change));
  change =
      (struct model_change){ .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = 4, .derives_from = 1 };
  assert_ok(model_state_apply(s, &change));
  change.generation = 6;
  change.derives_from = 5;
  assert_ok(model_state_apply(s, &change));
}

static void parts_of_a_derived_generation_are_those_of_its_root(void **state)
{
  static const char *const names[] = { "books@4", "books" };
  struct part parts[2];
  struct model_state s;

  (void)state;
  derive_some(&s);
  assert_name(&s, 0, "books@4", "books");
  assert_name(&s, 300, "books", "books");
  assert_name(&s, 0, "books@6", "books@5");
  assert_name(&s, 400, "books", "books@5");
  assert_fails(resolve(&s, 300, names, 2, parts), ERR_ITEM, "twice");
  assert_fails(resolve(&s, 0, names, 2, parts), ERR_ITEM, "twice");
  model_state_fini(&s);
}

static void parts_are_those_of_a_retired_generation_when_all_that_derive_are_retired(void **state)
{
  struct model_change change = { .kind = MODEL_RETIRE, .space = span_of_str("books"), .generation = 5 };
  struct model_state s;

  (void)state;
  derive_some(&s);
  assert_false(part_names_is_retired(&s, span_of_str("books"))); /* only 4 is */
  assert_false(part_names_is_retired(&s, span_of_str("books@5")));
  assert_ok(model_state_apply(&s, &change));
  assert_true(part_names_is_retired(&s, span_of_str("books@5")));
  change = (struct model_change){ .kind = MODEL_ADD, .space = change.space, .generation = 7, .derives_from = 5 };
  change.path = span_of_str("/m");
  change.digest = span_of_str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  assert_ok(model_state_apply(&s, &change));
  assert_false(part_names_is_retired(&s, span_of_str("books@5")));
  model_state_fini(&s);
}

static void two_parts_of_one_generation_are_refused(void **state)
{
  static const char *const names[] = { "films", "books", "books@2" }, *const firsts[] = { "books", "books@1" };
  struct model_state s;
  struct part parts[3];

  (void)state;
  make_state(&s);
  assert_ok(resolve(&s, 50, names, 3, parts));
  assert_fails(resolve(&s, 150, names, 3, parts), ERR_ITEM, "books@2");
  assert_fails(resolve(NULL, 150, firsts, 2, parts), ERR_ITEM, "books");
  model_state_fini(&s);
}

static void the_order_of_parts_does_not_matter(void **state)
{
  static const char *const orders[][2] = { { "books", "books@1" }, { "books@1", "books" } };
  struct model_state s;
  struct part parts[2];

  (void)state;
  make_state(&s);
  for (size_t i = 0; i < 2; i++) {
    assert_ok(resolve(&s, 150, orders[i], 2, parts));
    assert_true(span_equal(parts[i].space, span_of_str("books@2")));
    assert_true(span_equal(parts[1 - i].space, span_of_str("books")));
    assert_fails(resolve(&s, 50, orders[i], 2, parts), ERR_ITEM, "parts[\"books\"]: it is there twice");
  }
  model_state_fini(&s);
}

static void a_name_that_becomes_too_long_is_refused(void **state)
{
  static const char name[] = "a-name-of-sixty-four-bytes-has-no-room-for-the-generation-at-all";
  static const struct model_switch history[] = { { 2, 0 } };
  struct model_change change = {
    .kind = MODEL_SWITCHES, .space = span_of_str(name), .switches = history, .n_switches = 1
  };
  struct model_state s = { 0 };
  const char *names[] = { name };
  struct part part;

  (void)state;
  assert_int_equal(strlen(name), SPACE_NAME_MAX);
  assert_ok(model_state_apply(&s, &change));
  assert_fails(resolve(&s, 1, names, 1, &part), ERR_ITEM, "more than 64 bytes");
  model_state_fini(&s);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_plain_name_means_the_generation_of_the_records_time),
    cmocka_unit_test(a_name_with_a_generation_means_it_at_any_time),
    cmocka_unit_test(parts_of_a_derived_generation_are_those_of_its_root),
    cmocka_unit_test(parts_are_those_of_a_retired_generation_when_all_that_derive_are_retired),
    cmocka_unit_test(two_parts_of_one_generation_are_refused),
    cmocka_unit_test(the_order_of_parts_does_not_matter),
    cmocka_unit_test(a_name_that_becomes_too_long_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
