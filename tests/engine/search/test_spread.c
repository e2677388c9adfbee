/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of scans visit every index once, and begin with an even sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/search/spread.h"
#include "tests/support/dice.h"

enum { SMALL = 300, LARGE = 20000 };

static struct dice dice;
static uint8_t seen[LARGE];

static size_t draw_n(size_t turn)
{
  return turn < SMALL ? turn + 1 : 1 + dice_below(&dice, LARGE);
}

static void visit(size_t index, size_t n)
{
  assert_true(index < n);
  assert_int_equal(seen[index], 0);
  seen[index] = 1;
}

static void every_index_comes_once(void **state)
{
  (void)state;
  for (size_t turn = 0; turn < SMALL + 100; turn++) {
    size_t n = draw_n(turn);
    struct spread order = spread_over(n);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < n; i++) {
      size_t index = spread_next(&order);
      assert_int_equal(index, spread_at(&order, i));
      visit(index, n);
    }
  }
}

static void every_index_of_runs_comes_once(void **state)
{
  (void)state;
  for (size_t turn = 0; turn < SMALL + 100; turn++) {
    size_t n = draw_n(turn);
    struct spread_runs order = spread_runs_over(n);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < n; i++)
      visit(spread_runs_next(&order), n);
  }
}

static void every_run_is_in_the_sample(void **state)
{
  (void)state;
  for (size_t turn = 0; turn < SMALL + 100; turn++) {
    size_t n = draw_n(turn);
    struct spread_runs order = spread_runs_over(n);
    memset(seen, 0, sizeof seen);
    for (size_t i = order.runs.n; i > 0; i--)
      visit(spread_runs_next(&order), n);
    for (size_t first = 0; first < n; first += SPREAD_RUN)
      assert_int_equal(seen[first], 1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_index_comes_once),
    cmocka_unit_test(every_index_of_runs_comes_once),
    cmocka_unit_test(every_run_is_in_the_sample),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
