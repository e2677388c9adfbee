/* SPDX-License-Identifier: Apache-2.0 */
/* select_range_i64(), select_range_u8() and select_set_u8() of every level against the comparison of each value, and
 * list_bits() against its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "tests/support/assert_ok.h"
#include "tests/support/blocks.h"

enum { WORDS_MAX = 9, ROUNDS = 200 };

static struct dice dice;

/* Draw from few numbers about the ends of the type, so that values often equal a bound. */
static int64_t draw_i64(void)
{
  static const int64_t ends[] = { INT64_MIN, -1, 0, INT64_MAX - 3 };
  int64_t near = (int64_t)((uint64_t)ends[dice_below(&dice, 4)] + dice_below(&dice, 4));

  return dice_below(&dice, 4) ? near : (int64_t)dice_u64(&dice);
}

static void check_i64(const struct kernels *k, size_t n)
{
  int64_t *values = block_new(n * 64, sizeof *values), low = draw_i64(), high = draw_i64();
  uint64_t *words = block_new(n, sizeof *words);

  for (size_t i = 0; i < n * 64; i++)
    values[i] = draw_i64();
  if (low > high) {
    int64_t lower = high;
    high = low;
    low = lower;
  }
  k->select_range_i64(values, n, low, high, words);
  for (size_t i = 0; i < n * 64; i++)
    assert_int_equal(words[i / 64] >> (i % 64) & 1, low <= values[i] && values[i] <= high);
  free(words);
  free(values);
}

static void check_u8(const struct kernels *k, size_t n)
{
  uint8_t *values = block_new(n * 64, sizeof *values), low = (uint8_t)dice_below(&dice, 256);
  uint8_t high = (uint8_t)(low + dice_below(&dice, 256u - low));
  uint64_t *words = block_new(n, sizeof *words);

  for (size_t i = 0; i < n * 64; i++)
    values[i] = (uint8_t)dice_below(&dice, 256);
  k->select_range_u8(values, n, low, high, words);
  for (size_t i = 0; i < n * 64; i++)
    assert_int_equal(words[i / 64] >> (i % 64) & 1, low <= values[i] && values[i] <= high);
  free(words);
  free(values);
}

static void check_set(const struct kernels *k, size_t n)
{
  uint8_t *values = block_new(n * 64, sizeof *values), *set = block_new(32, 1);
  uint64_t *words = block_new(n, sizeof *words);

  for (size_t i = 0; i < 32; i++)
    set[i] = (uint8_t)dice_below(&dice, 256);
  for (size_t i = 0; i < n * 64; i++)
    values[i] = (uint8_t)dice_below(&dice, 256);
  k->select_set_u8(values, n, set, words);
  for (size_t i = 0; i < n * 64; i++)
    assert_int_equal(words[i / 64] >> (i % 64) & 1, set[values[i] / 8] >> values[i] % 8 & 1);
  free(words);
  free(set);
  free(values);
}

static void ranges_and_sets_hold_the_same_values_at_every_level(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    const struct kernels *k;
    assert_ok(kernels_get((enum isa)isa, &k));
    for (int i = 0; i < ROUNDS; i++) {
      check_i64(k, dice_below(&dice, WORDS_MAX + 1));
      check_u8(k, dice_below(&dice, WORDS_MAX + 1));
      check_set(k, dice_below(&dice, WORDS_MAX + 1));
    }
  }
}

/* Words of no bits, few, half or all of them. */
static uint64_t draw_word(void)
{
  uint64_t word = dice_u64(&dice);

  for (size_t i = dice_below(&dice, 8); i > 0; i--)
    word &= dice_u64(&dice);
  return dice_below(&dice, 4) ? word : dice_below(&dice, 2) ? 0 : UINT64_MAX;
}

/* Is a listed before b? */
static bool is_listed_before(const uint64_t *words, uint32_t a, uint32_t b)
{
  uint64_t below_a = words[a / 64] & ((UINT64_C(1) << a % 64) - 1);
  uint64_t below_b = words[b / 64] & ((UINT64_C(1) << b % 64) - 1);
  int rank_a = __builtin_popcountll(below_a), rank_b = __builtin_popcountll(below_b);

  if (a / 512 != b / 512)
    return a < b;
  return rank_a < rank_b || (rank_a == rank_b && a < b);
}

static void check_list(const struct kernels *k, size_t n)
{
  uint64_t *words = block_new(n, sizeof *words);
  uint32_t *numbers = block_new(n * 64 + LIST_PAD, sizeof *numbers), first = (uint32_t)dice_below(&dice, 1000);
  size_t n_wanted = 0;

  for (size_t w = 0; w < n; w++) {
    words[w] = draw_word();
    n_wanted += (size_t)__builtin_popcountll(words[w]);
  }
  assert_int_equal(k->list_bits(words, n, first, numbers), n_wanted);
  for (size_t i = 0; i < n_wanted; i++) {
    uint32_t bit = numbers[i] - first;
    assert_true(bit < 64 * n && (words[bit / 64] >> bit % 64 & 1));
    assert_true(i == 0 || is_listed_before(words, numbers[i - 1] - first, bit));
  }
  free(numbers);
  free(words);
}

static void bits_are_listed_in_the_same_order_at_every_level(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    const struct kernels *k;
    assert_ok(kernels_get((enum isa)isa, &k));
    for (int i = 0; i < ROUNDS; i++)
      check_list(k, dice_below(&dice, 4 * WORDS_MAX));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_and_sets_hold_the_same_values_at_every_level),
    cmocka_unit_test(bits_are_listed_in_the_same_order_at_every_level),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
