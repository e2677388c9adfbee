/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of slots: every mark is taken, once, in the order of the slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/attributes/slot_marks.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MANY_WORDS = 300 };

static uint64_t seed;

static void marks_are_taken_once_and_in_order(void **state)
{
  struct dice dice = { seed };
  struct slot_marks m;
  uint64_t wanted[MANY_WORDS], slots;

  (void)state;
  assert_ok(slot_marks_init(MANY_WORDS, &m));
  for (size_t round = 0; round < 200; round++) {
    memset(wanted, 0, sizeof wanted);
    for (size_t i = dice_below(&dice, 100); i > 0; i--) {
      uint32_t slot = (uint32_t)dice_below(&dice, round % 2 ? MANY_WORDS * 64 : 500);
      slot_marks_set(&m, slot);
      bits_set(wanted, slot);
    }
    if (round % 50 == 49) {
      slot_marks_set_all(&m, 1000);
      for (size_t slot = 0; slot < 1000; slot++)
        bits_set(wanted, slot);
    }
    size_t n = 0, at = 0;
    for (size_t word = 0; slot_marks_take(&m, word, &word, &slots); word++) {
      assert_true(n == 0 || word > at);
      assert_true(slots != 0 && slots == wanted[at = word]);
      n++;
    }
    for (size_t w = 0; w < MANY_WORDS; w++)
      n -= wanted[w] != 0;
    assert_int_equal(n, 0);
  }
  slot_marks_fini(&m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(marks_are_taken_once_and_in_order),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
