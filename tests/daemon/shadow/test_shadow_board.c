/* SPDX-License-Identifier: Apache-2.0 */
/* The board: which share of the queries is compared, and rows that come, count and go. */
#include "daemon/shadow/shadow_board.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"

enum { DRAWN = 100000 };

static struct config_space spaces[] = { { .name = (char *)"books" }, { .name = (char *)"films" } };
static const struct config config = { .spaces = spaces, .n_spaces = 2 };
static struct shadow_board board;

static int setup(void **state)
{
  (void)state;
  assert_ok(shadow_board_init(&config, &board));
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  shadow_board_fini(&board);
  return 0;
}

/* The only generations that there are. */
static void list_two(double share_2, const char *problem_2, double share_3)
{
  shadow_board_begin(&board);
  assert_ok(shadow_board_list(&board, 0, 2, share_2, problem_2));
  assert_ok(shadow_board_list(&board, 0, 3, share_3, ""));
  shadow_board_end(&board);
}

static double share_wanted(size_t space)
{
  size_t n = 0;

  for (int64_t i = 0; i < DRAWN; i++)
    n += shadow_board_wants(&board, space, shadow_board_draw((int32_t)(i % 3), i));
  return (double)n / DRAWN;
}

static void the_share_of_a_generation_is_compared(void **state)
{
  (void)state;
  assert_float_equal(share_wanted(0), 0, 0);
  list_two(0.05, "", 0);
  assert_float_equal(share_wanted(0), 0.05, 0.005);
  assert_float_equal(share_wanted(1), 0, 0);
  list_two(0.05, "", 0.5);
  assert_float_equal(share_wanted(0), 0.5, 0.01);
  list_two(1, "", 0.5);
  assert_float_equal(share_wanted(0), 1, 0);
  list_two(1, "it is not filled yet", 0.5);
  assert_float_equal(share_wanted(0), 0.5, 0.01);
  list_two(0, "", 0);
  assert_float_equal(share_wanted(0), 0, 0);
}

/* A query of the smaller share is one of the larger share too. */
static void generations_are_compared_for_the_same_queries(void **state)
{
  uint32_t generations[SHADOW_AT_ONCE];
  size_t n_both = 0, n_one = 0;

  (void)state;
  list_two(0.1, "", 0.4);
  for (int64_t i = 0; i < DRAWN; i++) {
    size_t n = shadow_board_targets(&board, 0, shadow_board_draw(0, i), generations);
    if (n == 1)
      assert_int_equal(generations[0], 3);
    n_both += n == 2;
    n_one += n == 1;
  }
  assert_float_equal((double)n_both / DRAWN, 0.1, 0.01);
  assert_float_equal((double)n_one / DRAWN, 0.3, 0.01);
  assert_int_equal(shadow_board_draw(1, 7), shadow_board_draw(1, 7));
}

static void a_row_counts_as_long_as_its_generation_is_listed(void **state)
{
  struct shadow_measures same = { .n_common = 5, .overlap = 1, .is_ranked = true, .correlation = 1 };
  struct shadow_measures none = { .overlap = 0 };

  (void)state;
  shadow_board_count(&board, 0, 2, &same, 10, 20); /* there is no such row: nothing happens */
  list_two(0.5, "", 0);
  assert_int_equal(board.n, 1);
  shadow_board_count(&board, 0, 2, &same, 10, 20);
  shadow_board_count(&board, 0, 2, &none, 10, 20);
  shadow_board_drop(&board, 0, 2, SHADOW_REFUSED, "the reason");
  shadow_board_drop(&board, 0, 2, SHADOW_BUSY, NULL);
  list_two(0, "", 0); /* it is compared no more; what came of it stays */
  const struct shadow_row *row = shadow_board_find(&board, 0, 2);
  assert_non_null(row);
  assert_string_equal(row->space_name, "books");
  assert_int_equal(row->n_compared, 2);
  assert_float_equal(row->overlap, 1, 0);
  assert_int_equal(row->n_ranked, 1);
  assert_float_equal(row->correlation, 1, 0);
  assert_int_equal(row->n_dropped[SHADOW_REFUSED], 1);
  assert_int_equal(row->n_dropped[SHADOW_BUSY], 1);
  assert_string_equal(row->reason, "the reason");
  shadow_board_begin(&board); /* it was retired */
  assert_ok(shadow_board_list(&board, 0, 3, 0.5, ""));
  shadow_board_end(&board);
  assert_null(shadow_board_find(&board, 0, 2));
  assert_non_null(shadow_board_find(&board, 0, 3));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_share_of_a_generation_is_compared, setup, teardown),
    cmocka_unit_test_setup_teardown(generations_are_compared_for_the_same_queries, setup, teardown),
    cmocka_unit_test_setup_teardown(a_row_counts_as_long_as_its_generation_is_listed, setup, teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
