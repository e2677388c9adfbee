/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers: what they have, and that no values which filters name often lie close together in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/attributes/attribute_column.h"
#include "engine/attributes/value_table.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { N = 1000, LONGEST = 64 };

static struct dice dice;
static struct region region;

/* Return the most places that lie together and are taken: a look-up reads no more than one more. */
static size_t longest_run(const struct value_table *t)
{
  size_t longest = 0, run = 0;

  for (size_t i = 0; i < 2 * t->n_places; i++) { /* twice: a run may go on at the beginning */
    run = t->places[i % t->n_places] == t->low ? 0 : run + 1;
    longest = run > longest ? run : longest;
  }
  return longest;
}

/* values [n], rising */
static void check(const int64_t *values, size_t n)
{
  struct value_table t;

  region_reset(&region);
  assert_ok(value_table_init(values, n, &region, &t));
  for (size_t i = 0; i < n; i++) {
    assert_true(value_table_has(&t, values[i]));
    if (values[i] < INT64_MAX)
      assert_int_equal(value_table_has(&t, values[i] + 1), i + 1 < n && values[i + 1] == values[i] + 1);
  }
  assert_true(longest_run(&t) <= LONGEST);
}

/* Numbers from first, each `step` more than the one before, as keys of doubles. */
static void check_doubles(double first, double step, size_t n)
{
  int64_t values[N];

  for (size_t i = 0; i < n; i++)
    values[i] = attribute_column_key(first + (double)i * step);
  check(values, n);
}

static void integral_doubles_are_spread(void **state)
{
  (void)state;
  check_doubles(1, 1, N);
  check_doubles(-500, 1, N);
  check_doubles(0, 1024, N);
  check_doubles(0, 0.25, N);
  for (size_t n = 1; n < 100; n++)
    check_doubles(1, 1, n);
}

static void powers_of_two_are_spread(void **state)
{
  int64_t values[N];
  double power = 0x1p-500;

  (void)state;
  for (size_t i = 0; i < N; i++, power *= 2)
    values[i] = attribute_column_key(power);
  check(values, N);
  for (size_t i = 0; i < 63; i++)
    values[i] = (int64_t)1 << i;
  check(values, 63);
}

static void integers_are_spread(void **state)
{
  static const int64_t steps[] = { 1, 2, 10, 1000, 86400000, INT64_C(1) << 32, INT64_C(1) << 52 };
  int64_t values[N];

  (void)state;
  for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
    for (size_t i = 0; i < N; i++)
      values[i] = ((int64_t)i - N / 2) * steps[s];
    check(values, N);
  }
}

static void drawn_values_are_spread(void **state)
{
  int64_t values[N] = { INT64_MIN };

  (void)state;
  for (size_t i = 1; i < N; i++)
    values[i] = values[i - 1] + 1 + (int64_t)(dice_u64(&dice) >> 11);
  check(values, N);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(integral_doubles_are_spread),
    cmocka_unit_test(powers_of_two_are_spread),
    cmocka_unit_test(integers_are_spread),
    cmocka_unit_test(drawn_values_are_spread),
  };

  dice.state = dice_seed();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return failed;
}
