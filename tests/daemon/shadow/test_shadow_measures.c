/* SPDX-License-Identifier: Apache-2.0 */
/* Overlap and rank correlation: small lists with values computed by hand, and random ones against the definitions. */
#include "daemon/shadow/shadow_measures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

static struct region region;

static void assert_near(double value, double expected)
{
  if (!(fabs(value - expected) < 1e-12))
    fail_msg("%.17g, not %.17g", value, expected);
}

/* Each character is a hit's key. */
static size_t hits_of(const char *keys, struct hit *out)
{
  size_t n = strlen(keys);

  for (size_t i = 0; i < n; i++)
    out[i] = (struct hit){ .key = span_of(keys + i, 1), .score = (float)(n - i) };
  return n;
}

static struct shadow_measures measure(const char *a, const char *b)
{
  struct hit hits_a[64], hits_b[64];
  struct shadow_measures m;
  size_t n_a = hits_of(a, hits_a), n_b = hits_of(b, hits_b);

  assert_ok(shadow_measures_take(hits_a, n_a, hits_b, n_b, &region, &m));
  return m;
}

static void values_are_those_computed_by_hand(void **state)
{
  static const struct {
    const char *a, *b;
    size_t n_common;
    double overlap;
    bool is_ranked;
    double correlation;
  } rows[] = {
    { "abcd", "abcd", 4, 1, true, 1 },
    { "abcd", "dcba", 4, 1, true, -1 },
    { "abcd", "bacd", 4, 1, true, 2.0 / 3 }, /* 1 of 6 pairs: 1 - 2/6 */
    { "abcd", "badc", 4, 1, true, 1.0 / 3 }, /* 2 of 6 pairs */
    { "abcde", "eabcd", 5, 1, true, 0.2 },   /* 4 of 10 pairs */
    { "abcd", "xcya", 2, 0.5, true, -1 },    /* a and c, in opposite orders */
    { "abcd", "xayc", 2, 0.5, true, 1 },
    { "abcdef", "fxdab", 4, 4.0 / 6, true, -2.0 / 3 }, /* f d a b: fd fa fb da db of 6 pairs are inverted */
    { "abcd", "wxyd", 1, 0.25, false, 0 },
    { "abcd", "wxyz", 0, 0, false, 0 },
    { "abcd", "ab", 2, 0.5, true, 1 }, /* the shorter list has no other hits */
    { "", "ab", 0, 0, false, 0 },
    { "ab", "", 0, 0, false, 0 },
    { "a", "a", 1, 1, false, 0 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) { /* both measures are symmetric */
      struct shadow_measures m = is_swapped ? measure(rows[i].b, rows[i].a) : measure(rows[i].a, rows[i].b);
      assert_int_equal(m.n_common, rows[i].n_common);
      assert_near(m.overlap, rows[i].overlap);
      assert_int_equal(m.is_ranked, rows[i].is_ranked);
      assert_near(m.correlation, rows[i].correlation);
    }
  }
}

/* Draw different keys, as many as `n`, among 60. */
static void draw(struct dice *dice, char *keys, size_t n)
{
  char all[61];

  for (size_t i = 0; i < 60; i++)
    all[i] = (char)('A' + i);
  for (size_t i = 0; i < n; i++) {
    size_t j = i + dice_below(dice, 60 - i);
    char other = all[j];
    all[j] = all[i];
    keys[i] = all[i] = other;
  }
  keys[n] = '\0';
}

/* The definition: over all pairs of common hits. */
static double tau_of(const char *a, const char *b, size_t *n_common)
{
  long n_pairs = 0, sum = 0;

  *n_common = 0;
  for (const char *x = a; *x; x++) {
    *n_common += strchr(b, *x) != NULL;
    for (const char *y = x + 1; *y; y++) {
      const char *x_in_b = strchr(b, *x), *y_in_b = strchr(b, *y);
      if (!x_in_b || !y_in_b)
        continue;
      n_pairs++;
      sum += x_in_b < y_in_b ? 1 : -1;
    }
  }
  return n_pairs ? (double)sum / (double)n_pairs : 0;
}

static void random_lists_agree_with_the_definition(void **state)
{
  struct dice dice = { dice_seed() };
  char a[61], b[61];

  (void)state;
  for (int i = 0; i < 2000; i++) {
    size_t n_common, n_a = 1 + dice_below(&dice, 60), n_b = dice_below(&dice, 61);
    draw(&dice, a, n_a);
    draw(&dice, b, n_b);
    struct shadow_measures m = measure(a, b);
    double tau = tau_of(a, b, &n_common);
    assert_int_equal(m.n_common, n_common);
    assert_near(m.overlap, (double)n_common / (double)(n_a > n_b ? n_a : n_b));
    assert_int_equal(m.is_ranked, n_common >= 2);
    assert_near(m.correlation, tau);
  }
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_are_those_computed_by_hand),
    cmocka_unit_test(random_lists_agree_with_the_definition),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
