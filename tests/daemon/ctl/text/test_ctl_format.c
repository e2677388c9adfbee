/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of numbers and durations as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_format.h"

#define MS CLOCK_NS_PER_MS
#define S  CLOCK_NS_PER_S

static void counts_have_commas(void **state)
{
  (void)state;
  assert_string_equal(ctl_format_count(0).s, "0");
  assert_string_equal(ctl_format_count(999).s, "999");
  assert_string_equal(ctl_format_count(1000).s, "1,000");
  assert_string_equal(ctl_format_count(63000).s, "63,000");
  assert_string_equal(ctl_format_count(123456).s, "123,456");
  assert_string_equal(ctl_format_count(UINT64_MAX).s, "18,446,744,073,709,551,615");
}

static void durations_have_two_digits_and_a_fitting_unit(void **state)
{
  const struct {
    int64_t ns;
    const char *text;
  } rows[] = {
    { 0, "0.00 ms" },
    { 250000, "0.25 ms" },
    { 994000, "0.99 ms" },
    { 996000, "1.0 ms" },
    { 9940 * 1000, "9.9 ms" },
    { 9960 * 1000, "10 ms" },
    { 12 * MS, "12 ms" },
    { 999 * MS, "999 ms" },
    { 999600 * 1000, "1.0 s" },
    { 3200 * MS, "3.2 s" },
    { 9960 * MS, "10 s" },
    { 59 * S, "59 s" },
    { 60 * S, "1 min 0 s" },
    { 245 * S, "4 min 5 s" },
    { 3600 * S, "1 h 0 min" },
    { 11520 * S, "3 h 12 min" },
    { 47 * 3600 * S, "47 h 0 min" },
    { 52 * 3600 * S, "2 d 4 h" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_string_equal(ctl_format_span(rows[i].ns).s, rows[i].text);
}

static void rates_have_three_digits(void **state)
{
  (void)state;
  assert_string_equal(ctl_format_rate(63000, 3200 * MS).s, "19,700");
  assert_string_equal(ctl_format_rate(5, S).s, "5");
  assert_string_equal(ctl_format_rate(1234567, S).s, "1,230,000");
  assert_string_equal(ctl_format_rate(9999, S).s, "10,000");
  assert_string_equal(ctl_format_rate(1, 0).s, "0");
}

static void times_are_before_1970_and_after_9999_too(void **state)
{
  static const struct {
    int64_t unix_ms;
    const char *text;
  } rows[] = {
    { 0, "1970-01-01T00:00:00.000Z" },
    { INT64_C(1700000000123), "2023-11-14T22:13:20.123Z" },
    { -1, "1969-12-31T23:59:59.999Z" },
    { -1500, "1969-12-31T23:59:58.500Z" },
    { -2000, "1969-12-31T23:59:58.000Z" },
    { INT64_C(253402300800000), "10000-01-01T00:00:00.000Z" },
    { INT64_MAX, "292278994-08-17T07:12:55.807Z" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_string_equal(ctl_format_time(rows[i].unix_ms).s, rows[i].text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_have_commas),
    cmocka_unit_test(durations_have_two_digits_and_a_fitting_unit),
    cmocka_unit_test(rates_have_three_digits),
    cmocka_unit_test(times_are_before_1970_and_after_9999_too),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
