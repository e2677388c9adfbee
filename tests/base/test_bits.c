/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the bits of words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "tests/support/dice.h"

enum { WORDS = 100, ROUNDS = 50 };

static void bits_are_counted(void **state)
{
  struct dice dice = { dice_seed() };
  uint64_t words[WORDS];

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    size_t n = dice_below(&dice, WORDS + 1), expected = 0;
    for (size_t w = 0; w < n; w++)
      words[w] = dice_below(&dice, 4) ? dice_u64(&dice) : (uint64_t)0 - dice_below(&dice, 2);
    for (size_t i = 0; i < 64 * n; i++)
      expected += bits_get(words, i);
    assert_int_equal(bits_count(words, n), expected);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(bits_are_counted) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
