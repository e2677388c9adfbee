/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text: every day of four centuries against the C library, zones, fractions, and what is no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/rfc3339.h"

static bool read_time(const char *text, int64_t *ms, bool *is_between)
{
  return rfc3339_read(span_of_str(text), ms, is_between);
}

static void each_day_is_that_of_the_c_library(void **state)
{
  const time_t day = 24 * 60 * 60;
  char text[32];
  bool is_between;
  int64_t ms;

  (void)state;
  for (time_t t = -135 * 365 * day; t < 400 * 365 * day; t += day + 1) { /* one more second each day */
    struct tm fields;
    assert_non_null(gmtime_r(&t, &fields));
    assert_int_not_equal(strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields), 0);
    assert_true(read_time(text, &ms, &is_between));
    assert_int_equal(ms, 1000 * (int64_t)t);
    assert_false(is_between);
  }
}

static void zones_and_fractions_count(void **state)
{
  static const struct {
    const char *text;
    int64_t ms;
    bool is_between;
  } rows[] = {
    { "1970-01-01T00:00:00Z", 0, false },
    { "1970-01-01t00:00:00z", 0, false },
    { "1970-01-01T00:00:00+00:00", 0, false },
    { "1970-01-01T00:00:00-00:00", 0, false },
    { "1970-01-01T01:30:00+01:30", 0, false },
    { "1969-12-31T12:00:00-12:00", 0, false },
    { "1970-01-01T23:59:00+23:59", 0, false },
    { "1970-01-01T00:00:00.1Z", 100, false },
    { "1970-01-01T00:00:00.12Z", 120, false },
    { "1970-01-01T00:00:00.123Z", 123, false },
    { "1970-01-01T00:00:00.123000000000000000000000Z", 123, false },
    { "1970-01-01T00:00:00.1230000000000000000000001Z", 123, true },
    { "1970-01-01T00:00:00.9999-01:00", 3600999, true },
    { "1969-12-31T23:59:59.999Z", -1, false },
    { "1969-12-31T23:59:59.9995Z", -1, true },
    { "2000-02-29T00:00:00Z", 951782400000, false },
    { "0000-01-01T00:00:00Z", -62167219200000, false },
    { "0000-03-01T00:00:00Z", -62162035200000, false },
    { "9999-12-31T23:59:59Z", 253402300799000, false },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int64_t ms;
    bool is_between;
    if (!read_time(rows[i].text, &ms, &is_between))
      fail_msg("%s is not taken", rows[i].text);
    if (ms != rows[i].ms || is_between != rows[i].is_between)
      fail_msg("%s: %lld, %d", rows[i].text, (long long)ms, is_between);
  }
}

static void what_is_no_time_is_refused(void **state)
{
  static const char *const rows[] = {
    "", "now", "2026", "2026-11-22", "2026-11-22T12:00Z", "2026-11-22T12:00:00", "2026-11-22 12:00:00Z",
    "2026-11-22T12:00:00+0100", "2026-11-22T12:00:00+01", "2026-11-22T12:00:00+24:00", "2026-11-22T12:00:00+01:60",
    "2026-11-22T12:00:00.Z", "2026-11-22T12:00:00,5Z", "2026-11-22T12:00:00Z ", " 2026-11-22T12:00:00Z",
    "2026-11-22T24:00:00Z", "2026-11-22T12:60:00Z", "2026-11-22T23:59:60Z", "2026-13-22T12:00:00Z",
    "2026-00-22T12:00:00Z", "2026-11-31T12:00:00Z", "2026-11-00T12:00:00Z", "2026-02-29T12:00:00Z",
    "2100-02-29T12:00:00Z", "2026-1-22T12:00:00Z", "26-11-22T12:00:00Z", "-026-11-22T12:00:00Z",
    "12026-11-22T12:00:00Z", "2026-11-22T12:00:00ZZ", "2026/11/22T12:00:00Z", "2026-11-22T12:00:0xZ",
    "1795348800000", "2026-11-22T12:00:00.", "2026-11-22T12:00:00+", "2026-11-22T12:00:00.5",
    "2026-11-22T\xff\xff:00:00Z", "\xff\xff\xff\xff-\xff\xff-\xff\xff",
  };
  int64_t ms;
  bool is_between;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (read_time(rows[i], &ms, &is_between))
      fail_msg("%s is taken", rows[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_day_is_that_of_the_c_library),
    cmocka_unit_test(zones_and_fractions_count),
    cmocka_unit_test(what_is_no_time_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
