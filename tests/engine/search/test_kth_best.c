/* SPDX-License-Identifier: Apache-2.0 */
/* The K-th best of a stream of scores, against a sorted copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/search/kth_best.h"
#include "tests/support/dice.h"

enum { SCORES = 5000 };

static struct dice dice;

static int falling(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;

  return (x < y) - (x > y);
}

/* Add n scores of `values` different values, in an order. */
static void check_stream(size_t k, size_t n, size_t values, bool is_rising)
{
  static float scores[SCORES], sorted[SCORES];
  struct region region = { 0 };
  struct kth_best best;

  assert_int_equal(kth_best_init(k, &region, &best), ERR_OK);
  for (size_t i = 0; i < n; i++)
    scores[i] = (float)(is_rising ? i * values / n : dice_below(&dice, values)) - 100.0f;
  memcpy(sorted, scores, sizeof sorted);
  qsort(sorted, n, sizeof *sorted, falling);
  for (size_t i = 0; i < n; i++) {
    kth_best_add(&best, scores[i]);
    assert_true(best.threshold == -INFINITY || (k <= n && best.threshold <= sorted[k - 1]));
  }
  kth_best_cut(&best);
  assert_true(best.threshold == (k <= n ? sorted[k - 1] : -INFINITY));
  region_fini(&region);
}

static void the_threshold_is_the_kth_best_score(void **state)
{
  static const size_t ks[] = { 1, 2, 10, 100, 2000 }, values[] = { 1, 3, 1000, 1000000 };

  (void)state;
  for (size_t i = 0; i < 400; i++)
    check_stream(ks[i % 5], dice_below(&dice, SCORES + 1), values[i / 5 % 4], i / 20 % 2);
}

static void nan_is_no_score(void **state)
{
  struct region region = { 0 };
  struct kth_best best;

  (void)state;
  assert_int_equal(kth_best_init(1, &region, &best), ERR_OK);
  kth_best_add(&best, NAN);
  kth_best_cut(&best);
  assert_true(best.threshold == -INFINITY);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_threshold_is_the_kth_best_score),
    cmocka_unit_test(nan_is_no_score),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
