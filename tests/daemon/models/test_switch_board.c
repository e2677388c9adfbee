/* SPDX-License-Identifier: Apache-2.0 */
/* Which generation a query of a time gets while shards switch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/models/switch_board.h"
#include "tests/support/assert_ok.h"

enum { BOOKS, FILMS, N_SPACES };

static void the_time_of_a_query_decides_until_the_newest_switch(void **state)
{
  static const struct model_switch history[] = {
    { 1, INT64_MIN }, { 2, 50000 }, { 1, 51000 }, { 3, 51000 }, { 0, 55000 }, { 2, 60000 }
  };
  struct switch_board b;

  (void)state;
  assert_ok(switch_board_init(N_SPACES, &b));
  assert_int_equal(switch_board_at(&b, BOOKS, 55000), 0);
  switch_board_set(&b, BOOKS, history, 2);
  assert_int_equal(switch_board_at(&b, BOOKS, 49999), 1);
  assert_int_equal(switch_board_at(&b, BOOKS, 50000), 0);
  switch_board_set(&b, BOOKS, history, 6);
  assert_int_equal(switch_board_at(&b, BOOKS, 49999), 1);
  assert_int_equal(switch_board_at(&b, BOOKS, 50000), 2);
  assert_int_equal(switch_board_at(&b, BOOKS, 50999), 2);
  assert_int_equal(switch_board_at(&b, BOOKS, 51000), 3);
  assert_int_equal(switch_board_at(&b, BOOKS, 54999), 3);
  assert_int_equal(switch_board_at(&b, BOOKS, 55000), 0);
  assert_int_equal(switch_board_at(&b, BOOKS, 59999), 0);
  assert_int_equal(switch_board_at(&b, BOOKS, 60000), 0);
  assert_int_equal(switch_board_at(&b, BOOKS, INT64_MAX), 0);
  assert_int_equal(switch_board_at(&b, FILMS, 59999), 0);
  switch_board_set(&b, BOOKS, NULL, 0);
  assert_int_equal(switch_board_at(&b, BOOKS, 59999), 0);
  switch_board_fini(&b);
}

static void queries_without_a_time_or_from_long_before_get_the_current_one(void **state)
{
  static const struct model_switch history[] = {
    { 1, INT64_MIN }, { 2, 5000 }, { 3, 90000 }, { 4, INT64_MAX }
  };
  struct switch_board b;

  (void)state;
  assert_ok(switch_board_init(N_SPACES, &b));
  switch_board_set(&b, BOOKS, history, 2);
  assert_int_equal(switch_board_at(&b, BOOKS, -1), 0);
  assert_int_equal(switch_board_at(&b, BOOKS, 0), 1);
  switch_board_set(&b, BOOKS, history, 3);
  assert_int_equal(switch_board_at(&b, BOOKS, 29999), 0);
  assert_int_equal(switch_board_at(&b, BOOKS, 30000), 2);
  switch_board_set(&b, BOOKS, history, 4);
  assert_int_equal(switch_board_at(&b, BOOKS, 95000), 0);
  switch_board_fini(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_time_of_a_query_decides_until_the_newest_switch),
    cmocka_unit_test(queries_without_a_time_or_from_long_before_get_the_current_one),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
