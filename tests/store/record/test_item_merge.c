/* SPDX-License-Identifier: Apache-2.0 */
/* Merging a put into the stored item: compared with a plain double loop over random parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/record/item_merge.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

#include <stdio.h>

enum { PARTS_MAX = 40, SPACES = 60 };

static uint64_t seed;
static char names[SPACES][8];

static struct span name_of(size_t space)
{
  snprintf(names[space], sizeof names[space], "%zu", space);
  return span_of(names[space], space == 0 ? 0 : strlen(names[space])); /* an empty name, too */
}

static bool has_space(const struct part *parts, size_t from, size_t to, struct span space)
{
  for (size_t i = from; i < to; i++)
    if (span_equal(parts[i].space, space))
      return true;
  return false;
}

static size_t random_parts(struct dice *dice, bool is_distinct, struct part *parts)
{
  size_t n_max = dice_below(dice, PARTS_MAX + 1);
  size_t n = 0;

  for (size_t i = 0; i < n_max; i++) {
    struct span space = name_of(dice_below(dice, SPACES));
    if (!is_distinct || !has_space(parts, 0, n, space))
      parts[n++] = (struct part){ .space = space, .vector.n = dice_below(dice, 1000) };
  }
  return n;
}

static size_t expect(const struct item_change *stored, const struct item_change *change, struct part *out)
{
  size_t n = 0;

  for (size_t i = 0; i < stored->n_parts; i++)
    if (!has_space(change->parts, 0, change->n_parts, stored->parts[i].space))
      out[n++] = stored->parts[i];
  for (size_t i = 0; i < change->n_parts; i++)
    if (!has_space(change->parts, i + 1, change->n_parts, change->parts[i].space))
      out[n++] = change->parts[i];
  return n;
}

static void the_last_part_of_each_space_counts_and_the_order_stays(void **state)
{
  struct dice dice = { seed };
  struct region region = { 0 };

  (void)state;
  for (int round = 0; round < 5000; round++) {
    struct part stored_parts[PARTS_MAX], new_parts[PARTS_MAX], want[2 * PARTS_MAX];
    struct item_change stored = { .parts = stored_parts, .offset = 7 };
    struct item_change change = { .parts = new_parts, .offset = 8 };
    struct item_change got;
    region_reset(&region);
    stored.n_parts = random_parts(&dice, true, stored_parts);
    change.n_parts = random_parts(&dice, false, new_parts);
    assert_ok(item_merge(&stored, &change, &region, &got));
    size_t n = expect(&stored, &change, want);
    assert_int_equal(got.n_parts, n);
    assert_int_equal(got.offset, 8);
    for (size_t i = 0; i < n; i++) {
      assert_true(span_equal(got.parts[i].space, want[i].space));
      assert_int_equal(got.parts[i].vector.n, want[i].vector.n);
    }
  }
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_last_part_of_each_space_counts_and_the_order_stays),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
