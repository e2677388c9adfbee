/* SPDX-License-Identifier: Apache-2.0 */
/* The K best against a full sort: ties, any order of arrival, infinite scores. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/topk.h"
#include "tests/support/blocks.h"

static struct dice dice;

/* The keys are a permutation of the slots: their order differs from that of the slots. */
static int order_by_key(const void *context, uint32_t a, uint32_t b)
{
  const uint32_t *keys = context;

  return (keys[a] > keys[b]) - (keys[a] < keys[b]);
}

static const uint32_t *oracle_keys;

static int compare_entries(const void *a, const void *b)
{
  const struct topk_entry *x = a, *y = b;

  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  return order_by_key(oracle_keys, x->slot, y->slot);
}

static void shuffle(uint32_t *values, size_t n)
{
  for (size_t i = n; i > 1; i--) {
    size_t j = dice_below(&dice, i);
    uint32_t old = values[i - 1];
    values[i - 1] = values[j];
    values[j] = old;
  }
}

static uint32_t *permutation_new(size_t n)
{
  uint32_t *values = block_new(n, sizeof *values);

  for (size_t i = 0; i < n; i++)
    values[i] = (uint32_t)i;
  shuffle(values, n);
  return values;
}

/* Few different scores: most tie. */
static struct topk_entry *entries_new(size_t n, size_t n_values)
{
  struct topk_entry *entries = block_new(n, sizeof *entries);

  for (size_t i = 0; i < n; i++)
    entries[i] = (struct topk_entry){ (float)dice_below(&dice, n_values) - (float)(n_values / 2), (uint32_t)i };
  return entries;
}

static void assert_same_entries(const struct topk_entry *found, const struct topk_entry *wanted, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(found[i].slot, wanted[i].slot);
    assert_true(found[i].score == wanted[i].score);
  }
}

/* Push in the order of arrival, and compare with a full sort. */
static void check_one(const struct topk_entry *entries, const uint32_t *arrival, const uint32_t *keys, size_t n,
                      size_t k)
{
  struct topk_entry *heap = block_new(k, sizeof *heap), *sorted = block_new(n, sizeof *sorted);
  size_t kept = n < k ? n : k;
  struct topk t;

  memcpy(sorted, entries, n * sizeof *sorted);
  oracle_keys = keys;
  qsort(sorted, n, sizeof *sorted, compare_entries);
  topk_init(&t, heap, k, order_by_key, keys);
  for (size_t i = 0; i < n; i++)
    topk_push(&t, entries[arrival[i]].score, entries[arrival[i]].slot);
  assert_true(topk_threshold(&t) == (n < k ? -INFINITY : sorted[k - 1].score));
  assert_int_equal(topk_finish(&t), kept);
  assert_same_entries(heap, sorted, kept);
  free(sorted);
  free(heap);
}

static void the_best_k_come_out_sorted_whatever_the_ties_and_the_arrival(void **state)
{
  static const size_t values[] = { 1, 2, 5, 1000 };

  (void)state;
  for (size_t round = 0; round < 400; round++) {
    size_t n = dice_below(&dice, 200), k = 1 + dice_below(&dice, round % 4 ? 30 : 250);
    struct topk_entry *entries = entries_new(n, values[round % 4]);
    uint32_t *keys = permutation_new(n), *arrival = permutation_new(n);
    check_one(entries, arrival, keys, n, k);
    shuffle(arrival, n);
    check_one(entries, arrival, keys, n, k);
    free(arrival);
    free(keys);
    free(entries);
  }
}

static void many_entries_come_out_sorted_too(void **state)
{
  static const size_t values[] = { 1, 40, 1000000 };
  enum { N = 6000, K = 5000 };

  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    struct topk_entry *entries = entries_new(N, values[i]);
    uint32_t *keys = permutation_new(N), *arrival = permutation_new(N);
    entries[7].score = INFINITY;
    entries[8].score = -INFINITY;
    check_one(entries, arrival, keys, N, K);
    check_one(entries, arrival, keys, N, N + 1);
    free(arrival);
    free(keys);
    free(entries);
  }
}

/* Entries that come in the order of their scores, the worst or the best first. */
static void entries_in_order_come_out_sorted(void **state)
{
  static const size_t values[] = { 3, 1000000 };
  enum { N = 300 };

  (void)state;
  for (size_t round = 0; round < 8; round++) {
    struct topk_entry *entries = entries_new(N, values[round % 2]);
    uint32_t *keys = permutation_new(N), *none = block_new(N, sizeof *none);
    for (uint32_t i = 0; i < N; i++)
      none[i] = i;
    oracle_keys = none; /* ties by slot: not the order that they have at the end */
    qsort(entries, N, sizeof *entries, compare_entries);
    for (uint32_t i = 0; i < N; i++)
      none[i] = round % 4 < 2 ? N - 1 - i : i;
    for (size_t k = N - 100; k <= N + 1; k += 50)
      check_one(entries, none, keys, N, k);
    free(none);
    free(keys);
    free(entries);
  }
}

/* The threshold after each push is the K-th best score so far. */
static void the_threshold_rises_to_the_kth_best_score(void **state)
{
  enum { N = 60, K = 7 };
  struct topk_entry heap[K], sorted[N];
  uint32_t *keys = permutation_new(N);
  struct topk t;

  (void)state;
  topk_init(&t, heap, K, order_by_key, keys);
  oracle_keys = keys;
  for (uint32_t i = 0; i < N; i++) {
    sorted[i] = (struct topk_entry){ (float)dice_below(&dice, 12), i };
    topk_push(&t, sorted[i].score, i);
    qsort(sorted, i + 1, sizeof sorted[0], compare_entries);
    assert_true(topk_threshold(&t) == (i + 1 < K ? -INFINITY : sorted[K - 1].score));
  }
  free(keys);
}

static void infinite_scores_are_ordered_like_others(void **state)
{
  static const float scores[] = { -INFINITY, 1.0f, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, INFINITY };
  enum { N = sizeof scores / sizeof scores[0] };
  struct topk_entry entries[N];
  uint32_t *keys = permutation_new(N), *arrival = permutation_new(N);

  (void)state;
  for (uint32_t i = 0; i < N; i++)
    entries[i] = (struct topk_entry){ scores[i], i };
  for (size_t k = 1; k <= N + 1; k++)
    check_one(entries, arrival, keys, N, k);
  free(arrival);
  free(keys);
}

static void nothing_pushed_gives_nothing(void **state)
{
  struct topk_entry heap[3];
  struct topk t;

  (void)state;
  topk_init(&t, heap, 3, order_by_key, NULL);
  assert_true(topk_threshold(&t) == -INFINITY);
  assert_int_equal(topk_finish(&t), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_best_k_come_out_sorted_whatever_the_ties_and_the_arrival),
    cmocka_unit_test(many_entries_come_out_sorted_too),
    cmocka_unit_test(entries_in_order_come_out_sorted),
    cmocka_unit_test(the_threshold_rises_to_the_kth_best_score),
    cmocka_unit_test(infinite_scores_are_ordered_like_others),
    cmocka_unit_test(nothing_pushed_gives_nothing),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
