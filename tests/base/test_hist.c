/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: quantiles compared with those of sorted numbers, counts, windows and threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hist.h"
#include "tests/support/dice.h"

enum { MAX_VALUES = 5000, THREADS = 4, ADDS = 20000 };

static uint64_t seed;

static const struct hist_window since_start; /* a window that is never turned */

static int rising(const void *a, const void *b)
{
  const uint64_t *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

/* Return the smallest sorted value with at least a share q of all values at or below it. */
static uint64_t true_quantile(const uint64_t *sorted, size_t n, double q)
{
  for (size_t i = 0; i < n; i++) {
    if ((double)(i + 1) >= q * (double)n)
      return sorted[i];
  }
  return sorted[n - 1];
}

static void quantiles_are_within_a_quarter_above_the_true_ones(void **state)
{
  static const double quantiles[] = { 0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0 };
  static uint64_t values[MAX_VALUES];
  struct dice dice = { seed };

  (void)state;
  for (int round = 0; round < 100; round++) {
    struct hist h = { 0 };
    size_t n = 1 + dice_below(&dice, round % 2 ? MAX_VALUES : 5);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
      values[i] = dice_u64(&dice) >> (24 + dice_below(&dice, 40));
      sum += values[i];
      hist_add(&h, values[i]);
    }
    qsort(values, n, sizeof values[0], rising);
    assert_int_equal(hist_window_count(&since_start, &h), n);
    assert_int_equal(h.sum, sum);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
      uint64_t want = true_quantile(values, n, quantiles[i]);
      uint64_t have = hist_window_quantile(&since_start, &h, quantiles[i]);
      assert_true(have >= want);
      assert_true((double)have <= 1.25 * (double)want);
    }
  }
}

static void every_power_and_its_neighbours_fall_into_their_bucket(void **state)
{
  (void)state;
  for (int power = 0; power < 41; power++) {
    for (int64_t off = -1; off <= 1; off++) {
      struct hist h = { 0 };
      uint64_t value = (UINT64_C(1) << power) + (uint64_t)off;
      hist_add(&h, value);
      uint64_t have = hist_window_quantile(&since_start, &h, 0.5);
      assert_true(have >= value && (double)have <= 1.25 * (double)value);
    }
  }
}

static void counts_below_powers_of_two_are_exact(void **state)
{
  struct hist h = { 0 };
  struct hist_powers p;
  struct dice dice = { seed };
  uint64_t expected[HIST_POWERS] = { 0 };

  (void)state;
  for (int i = 0; i < MAX_VALUES; i++) {
    uint64_t value = dice_u64(&dice) >> dice_below(&dice, 64);
    if (i < 3 * 44) /* powers of two and their neighbours */
      value = (UINT64_C(1) << (i / 3)) + (uint64_t)(i % 3) - 1;
    hist_add(&h, value);
    for (int power = 0; power < HIST_POWERS; power++)
      expected[power] += value < UINT64_C(1) << power;
  }
  hist_powers_get(&h, &p);
  assert_int_equal(p.n, MAX_VALUES);
  for (int power = 0; power < HIST_POWERS; power++)
    assert_int_equal(p.below[power], expected[power]);
}

static void a_window_forgets_what_was_two_turns_ago(void **state)
{
  struct hist h = { 0 };
  struct hist_window w = { 0 };

  (void)state;
  for (int i = 0; i < 1000; i++)
    hist_add(&h, 1000000); /* values that the window must forget */
  assert_int_equal(hist_window_count(&w, &h), 1000);
  hist_window_turn(&w, &h);
  for (int i = 0; i < 10; i++)
    hist_add(&h, 1);
  assert_int_equal(hist_window_count(&w, &h), 1010);
  assert_int_equal(hist_window_quantile(&w, &h, 0.99), hist_window_quantile(&since_start, &h, 0.99));
  hist_window_turn(&w, &h);
  assert_int_equal(hist_window_count(&w, &h), 10);
  assert_int_equal(hist_window_quantile(&w, &h, 0.99), 1);
  assert_true(hist_window_quantile(&since_start, &h, 0.99) >= 1000000);
  hist_window_turn(&w, &h);
  assert_int_equal(hist_window_count(&w, &h), 0);
  assert_int_equal(hist_window_quantile(&w, &h, 0.99), 0);
}

static void an_empty_histogram_says_zero(void **state)
{
  struct hist h = { 0 };

  (void)state;
  assert_int_equal(hist_window_count(&since_start, &h), 0);
  assert_int_equal(hist_window_quantile(&since_start, &h, 0.0), 0);
  assert_int_equal(hist_window_quantile(&since_start, &h, 1.0), 0);
}

static void values_off_the_scale_count_as_the_largest(void **state)
{
  struct hist h = { 0 };

  (void)state;
  hist_add(&h, UINT64_MAX);
  hist_add(&h, UINT64_C(1) << 50);
  assert_int_equal(hist_window_count(&since_start, &h), 2);
  assert_true(hist_window_quantile(&since_start, &h, 0.5) > UINT64_C(1) << 40);
}

static void *add_many(void *context)
{
  for (uint64_t i = 0; i < ADDS; i++)
    hist_add(context, i % 1000);
  return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
  struct hist h = { 0 };
  pthread_t threads[THREADS];

  (void)state;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, add_many, &h), 0);
  for (int i = 0; i < 100; i++)
    assert_true(hist_window_quantile(&since_start, &h, 1.0) < 1250);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(hist_window_count(&since_start, &h), THREADS * ADDS);
  assert_int_equal(h.sum, (uint64_t)THREADS * ADDS / 1000 * (999 * 1000 / 2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(quantiles_are_within_a_quarter_above_the_true_ones),
    cmocka_unit_test(every_power_and_its_neighbours_fall_into_their_bucket),
    cmocka_unit_test(counts_below_powers_of_two_are_exact),
    cmocka_unit_test(a_window_forgets_what_was_two_turns_ago),
    cmocka_unit_test(an_empty_histogram_says_zero),
    cmocka_unit_test(values_off_the_scale_count_as_the_largest),
    cmocka_unit_test(nothing_is_lost_between_threads),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
