/* SPDX-License-Identifier: Apache-2.0 */
/* When buckets are divided anew: if values drift, not if they stay as they are, and for no other slots than those in
 * use. Also which values are in a bucket, and which buckets lie in a set of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "engine/attributes/value_buckets.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { N = 20000, WORDS = (N + 63) / 64, ROUNDS = 10 };

static struct dice dice;

struct world {
  struct value_buckets buckets;
  uint64_t present[WORDS];
  int64_t values[WORDS * 64];
  uint64_t n;
  size_t n_divided; /* times that the buckets were divided */
};

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);

  assert_ok(value_buckets_init(WORDS, &w->buckets));
  return w;
}

static void close_world(struct world *w)
{
  value_buckets_fini(&w->buckets, WORDS);
  free(w);
}

static void put(struct world *w, size_t slot, int64_t value)
{
  bool had_value = bits_get(w->present, slot);

  w->values[slot] = value;
  w->n += !had_value;
  bits_set(w->present, slot);
  if (value_buckets_put(&w->buckets, (uint32_t)slot, had_value, value)) {
    value_buckets_divide(&w->buckets, w->present, w->values, WORDS, w->n);
    w->n_divided++;
  }
}

static void check(const struct world *w)
{
  uint64_t counts[VALUE_BUCKETS] = { 0 };
  int64_t low, high;

  for (size_t slot = 0; slot < N; slot++) {
    if (!bits_get(w->present, slot)) {
      assert_int_equal(w->buckets.of_slot[slot], 0);
      continue;
    }
    assert_true(value_buckets_bounds(&w->buckets, w->buckets.of_slot[slot], &low, &high));
    assert_true(low <= w->values[slot] && w->values[slot] <= high);
    assert_true(w->buckets.low <= low && high <= w->buckets.high);
    assert_int_equal(w->buckets.of_slot[slot], value_buckets_find(&w->buckets, w->values[slot]));
    counts[w->buckets.of_slot[slot]]++;
  }
  assert_memory_equal(counts, w->buckets.counts, sizeof counts);
  for (unsigned bucket = 0; bucket < VALUE_BUCKETS; bucket++)
    assert_true(value_buckets_bounds(&w->buckets, bucket, &low, &high) == (counts[bucket] > 0));
  assert_int_equal(w->buckets.n, w->n);
}

static uint64_t fullest(const struct world *w)
{
  uint64_t most = 0;

  for (size_t i = 0; i < VALUE_BUCKETS; i++)
    most = w->buckets.counts[i] > most ? w->buckets.counts[i] : most;
  return most;
}

static int64_t draw_evenly(void)
{
  return (int64_t)dice_u64(&dice);
}

/* Half of the slots have the same value. The others have few values, or many. */
static int64_t draw_mostly_ten(void)
{
  return dice_below(&dice, 2) ? 10 : (int64_t)dice_below(&dice, 1000);
}

static int64_t draw_few(void)
{
  return dice_below(&dice, 3) ? 10 : 20 + (int64_t)dice_below(&dice, 3);
}

static void values_that_stay_alike_are_divided_seldom(void **state)
{
  int64_t (*const draws[])(void) = { draw_evenly, draw_mostly_ten, draw_few };

  (void)state;
  for (size_t d = 0; d < sizeof draws / sizeof *draws; d++) {
    struct world *w = open_world();
    for (size_t slot = 0; slot < N; slot++)
      put(w, slot, draws[d]());
    size_t n_before = w->n_divided;
    assert_in_range(n_before, 1, 3);
    for (size_t i = 0; i < (size_t)ROUNDS * N; i++)
      put(w, dice_below(&dice, N), draws[d]());
    assert_in_range(w->n_divided - n_before, 0, 1);
    check(w);
    close_world(w);
  }
}

static void buckets_follow_values_that_drift(void **state)
{
  struct world *w = open_world();

  (void)state;
  for (size_t i = 0; i < (size_t)ROUNDS * N; i++) {
    put(w, i % N, (int64_t)i * 1000);
    if (i % N == N - 1)
      assert_true(fullest(w) < N / 2);
  }
  check(w);
  assert_in_range(w->n_divided, ROUNDS, 6 * ROUNDS);
  while (w->n) { /* and slots lose their values */
    bits_clear(w->present, --w->n);
    value_buckets_drop(&w->buckets, (uint32_t)w->n);
  }
  check(w);
  close_world(w);
}

/* Words after the last slot that has a value are never read: the sanitizer would report it. */
static void only_words_in_use_are_read(void **state)
{
  enum { USED = 300 };
  struct world *w = open_world();
  uint64_t *present = calloc(bits_words(USED), sizeof *present);
  int64_t *values = calloc(bits_words(USED) * 64, sizeof *values);

  (void)state;
  for (size_t slot = 0; slot < USED; slot++) {
    bits_set(present, slot);
    values[slot] = draw_evenly();
  }
  value_buckets_divide(&w->buckets, present, values, WORDS, USED);
  assert_int_equal(w->buckets.n, USED);
  free(present);
  free(values);
  close_world(w);
}

static bool has_bit(const uint8_t *bits, size_t i)
{
  return bits[i / 8] >> i % 8 & 1;
}

/* Values below 300 fill buckets of one or two values. */
static void a_bucket_is_in_a_set_if_all_its_values_are(void **state)
{
  struct world *w = open_world();

  (void)state;
  for (size_t slot = 0; slot < N; slot++)
    put(w, slot, (int64_t)dice_below(&dice, 300));
  for (int round = 0; round < ROUNDS; round++) {
    struct value_bucket_set touched = { 0 }, expected, found;
    int64_t values[300];
    size_t n = 0;
    memset(expected.inner, 0xff, sizeof expected.inner);
    for (int64_t value = -1; value <= 300; value++) {
      uint8_t bucket = value_buckets_find(&w->buckets, value);
      bool is_in = value >= 0 && value < 300 && dice_below(&dice, 4) > 0;
      if (is_in)
        values[n++] = value;
      if (is_in)
        touched.touched[bucket / 8] |= (uint8_t)(1u << bucket % 8);
      else
        expected.inner[bucket / 8] &= (uint8_t) ~(1u << bucket % 8);
    }
    value_buckets_set(&w->buckets, values, n, &found);
    for (size_t i = 0; i < VALUE_BUCKETS; i++) {
      assert_int_equal(has_bit(found.touched, i), has_bit(touched.touched, i));
      assert_int_equal(has_bit(found.inner, i), has_bit(touched.touched, i) && has_bit(expected.inner, i));
    }
  }
  close_world(w);
}

static void drop(struct world *w, size_t slot)
{
  value_buckets_drop(&w->buckets, (uint32_t)slot);
  bits_clear(w->present, slot);
  w->n--;
}

static void move(struct world *w, size_t from, size_t to)
{
  value_buckets_move(&w->buckets, (uint32_t)from, (uint32_t)to);
  w->values[to] = w->values[from];
  bits_clear(w->present, from);
  bits_set(w->present, to);
}

/* Values of all sizes, the smallest and largest among them. */
static int64_t draw_value(void)
{
  static const int64_t some[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };

  return dice_below(&dice, 10) ? (int64_t)(dice_u64(&dice) >> dice_below(&dice, 64)) - (int64_t)dice_below(&dice, 1000)
                               : some[dice_below(&dice, 7)];
}

static void buckets_bound_their_values_whatever_happens(void **state)
{
  struct world *w = open_world();

  (void)state;
  check(w);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < N; i++) {
      size_t slot = dice_below(&dice, N), other = dice_below(&dice, N);
      if (dice_below(&dice, 3) || !bits_get(w->present, slot))
        put(w, slot, draw_value());
      else if (bits_get(w->present, other))
        drop(w, slot);
      else
        move(w, slot, other);
    }
    check(w);
  }
  assert_true(w->n_divided > 0);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_that_stay_alike_are_divided_seldom),
    cmocka_unit_test(buckets_follow_values_that_drift),
    cmocka_unit_test(only_words_in_use_are_read),
    cmocka_unit_test(buckets_bound_their_values_whatever_happens),
    cmocka_unit_test(a_bucket_is_in_a_set_if_all_its_values_are),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
