/* SPDX-License-Identifier: Apache-2.0 */
/* The newest warnings and errors: which lines are kept, their order, and their length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/log_recent.h"

static struct log_line lines[LOG_RECENT_MAX];

static void test_warnings_and_errors_are_kept(void **state)
{
  (void)state;
  log_info("fine", "n=1");
  log_warn("odd", "n=%d", 2);
  log_error("bad", "n=%d", 3);
  assert_int_equal(log_recent_get(lines), 2);
  assert_string_equal(lines[0].text, "event=bad n=3");
  assert_int_equal(lines[0].level, LOG_LEVEL_ERROR);
  assert_string_equal(lines[1].text, "event=odd n=2");
  assert_int_equal(lines[1].level, LOG_LEVEL_WARN);
  assert_true(lines[1].unix_ms > INT64_C(1500000000000) && lines[1].unix_ms <= lines[0].unix_ms);
}

static void test_the_newest_lines_stay(void **state)
{
  (void)state;
  for (int i = 0; i < 3 * LOG_RECENT_MAX; i++)
    log_warn("many", "i=%d", i);
  assert_int_equal(log_recent_get(lines), LOG_RECENT_MAX);
  for (int i = 0; i < LOG_RECENT_MAX; i++) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "event=many i=%d", 3 * LOG_RECENT_MAX - 1 - i);
    assert_string_equal(lines[i].text, wanted);
  }
}

static void test_a_long_line_is_cut(void **state)
{
  char text[2 * LOG_RECENT_BYTES];

  (void)state;
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  log_warn("long", "text=%s", text);
  assert_true(log_recent_get(lines) > 0);
  assert_int_equal(strlen(lines[0].text), LOG_RECENT_BYTES - 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_warnings_and_errors_are_kept),
    cmocka_unit_test(test_the_newest_lines_stay),
    cmocka_unit_test(test_a_long_line_is_cut),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
