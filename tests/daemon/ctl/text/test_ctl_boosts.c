/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of boosts on the command line, and of the time that their ages are counted to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_boosts.h"
#include "tests/support/assert_ok.h"

static void boosts_are_kept_in_their_order(void **state)
{
  struct ctl_boosts b = { 0 };

  (void)state;
  assert_ok(ctl_boosts_take(&b, "0.25:popularity"));
  assert_ok(ctl_boosts_take_if(&b, "-1e9:section = 'a:b' or price < 3"));
  assert_ok(ctl_boosts_take(&b, "+2:published:90s"));
  assert_int_equal(b.n, 3);
  assert_true(b.v[0].weight == 0.25 && b.v[0].half_life_ms == 0 && b.v[0].filter.n == 0);
  assert_true(span_equal(b.v[0].attribute, span_of_str("popularity")));
  assert_true(b.v[1].weight == -1e9 && b.v[1].attribute.n == 0 && b.v[1].n_parameters == 0);
  assert_true(span_equal(b.v[1].filter, span_of_str("section = 'a:b' or price < 3")));
  assert_true(b.v[2].weight == 2 && span_equal(b.v[2].attribute, span_of_str("published")));
  assert_int_equal(b.v[2].half_life_ms, 90000);
  assert_string_equal(b.texts[2], "+2:published:90s");
}

static void a_half_life_has_a_unit(void **state)
{
  static const struct {
    const char *text;
    int64_t ms;
  } rows[] = {
    { "1:t:1s", 1000 }, { "1:t:15m", 900000 }, { "1:t:6h", 21600000 }, { "1:t:7d", 604800000 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct ctl_boosts b = { 0 };
    assert_ok(ctl_boosts_take(&b, rows[i].text));
    assert_true(b.v[0].half_life_ms == rows[i].ms);
  }
}

static void wrong_boosts_are_refused_with_what_is_expected(void **state)
{
  static const char *const shapes[] = { "", "popularity", "0.2", "0.2:", ":popularity", "x:popularity", "0.2x:popularity",
                                        "0.2::7d" };
  static const char *const half_lives[] = { "1:t:", "1:t:0s", "1:t:7", "1:t:7w", "1:t:-7d", "1:t:1.5h", "1:t:7d:8d" };
  static const char *const weights[] = { "nan:popularity", "inf:popularity", "-inf:popularity", "1.001e9:popularity",
                                         "1e999:popularity" };
  struct ctl_boosts b = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    assert_fails(ctl_boosts_take(&b, shapes[i]), ERR_USAGE, "--boost expects a weight, an attribute and");
  for (size_t i = 0; i < sizeof half_lives / sizeof half_lives[0]; i++)
    assert_fails(ctl_boosts_take(&b, half_lives[i]), ERR_USAGE, "a half-life is a number with a unit, such as 90s");
  for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
    assert_fails(ctl_boosts_take(&b, weights[i]), ERR_USAGE, "a weight is from -1e+09 to 1e+09");
    assert_fails(ctl_boosts_take_if(&b, weights[i]), ERR_USAGE, "a weight is from -1e+09 to 1e+09");
  }
  for (size_t i = 0; i < 6; i++)
    assert_fails(ctl_boosts_take_if(&b, shapes[i]), ERR_USAGE, "--boost-if expects a weight and a filter");
  assert_int_equal(b.n, 0);
}

static void there_are_at_most_eight(void **state)
{
  struct ctl_boosts b = { 0 };

  (void)state;
  for (size_t i = 0; i < QUERY_BOOSTS_MAX; i++)
    assert_ok(ctl_boosts_take(&b, "1:a"));
  assert_fails(ctl_boosts_take(&b, "1:a"), ERR_USAGE, "--boost and --boost-if: more than 8 boosts");
  assert_fails(ctl_boosts_take_if(&b, "1:a = 1"), ERR_USAGE, "--boost and --boost-if: more than 8 boosts");
}

static void now_is_a_time_or_milliseconds(void **state)
{
  static const char *const bad[] = { "", "yesterday", "-5", "1.5", "9223372036854775808", "1969-12-31T23:59:59.999Z" };
  struct ctl_boosts b = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_fails(ctl_boosts_take_now(&b, bad[i]), ERR_USAGE, "--now");
    assert_false(b.has_now);
  }
  assert_ok(ctl_boosts_take_now(&b, "1790000000250"));
  assert_true(b.has_now && b.now_unix_ms == 1790000000250);
  assert_ok(ctl_boosts_take_now(&b, "2026-09-21T14:13:20.25Z"));
  assert_true(b.now_unix_ms == 1790000000250);
  assert_ok(ctl_boosts_take_now(&b, "1970-01-01T00:00:00Z"));
  assert_true(b.now_unix_ms == 0);
  int64_t before_ms = clock_unix_ms();
  assert_ok(ctl_boosts_take_now(&b, "1h"));
  assert_in_range(b.now_unix_ms, before_ms - 3600000, clock_unix_ms() - 3600000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(boosts_are_kept_in_their_order),
    cmocka_unit_test(a_half_life_has_a_unit),
    cmocka_unit_test(wrong_boosts_are_refused_with_what_is_expected),
    cmocka_unit_test(there_are_at_most_eight),
    cmocka_unit_test(now_is_a_time_or_milliseconds),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
