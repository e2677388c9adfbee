/* SPDX-License-Identifier: Apache-2.0 */
/* Which ages of records are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/age_watch.h"

enum { HOUR_MS = 3600000 };

static void an_age_is_that_of_the_timestamp(void **state)
{
  struct age_watch w = { 0 };

  (void)state;
  age_watch_look(&w);
  assert_in_range(age_watch_age_ms(&w, clock_unix_ms() - HOUR_MS), HOUR_MS, HOUR_MS + 60000);
  assert_int_equal(age_watch_age_ms(&w, clock_unix_ms() + AGE_SKEW_MS / 2), 0);
  int64_t now_ns = clock_now_ns();
  assert_true(age_watch_written_ns(&w, clock_unix_ms() - 1, now_ns) <= now_ns - CLOCK_NS_PER_MS);
}

/* The difference to a timestamp far below zero has no room in 64 bits. */
static void a_record_without_a_usable_timestamp_has_no_age(void **state)
{
  const int64_t unusable[] = { INT64_MIN, -1, 0, clock_unix_ms() + HOUR_MS, INT64_MAX };
  struct age_watch w = { 0 };

  (void)state;
  age_watch_look(&w);
  for (size_t i = 0; i < sizeof unusable / sizeof unusable[0]; i++) {
    assert_int_equal(age_watch_age_ms(&w, unusable[i]), -1);
    assert_int_equal(age_watch_written_ns(&w, unusable[i], clock_now_ns()), 0);
  }
}

static void large_ages_are_doubtful_after_a_step_of_our_clock(void **state)
{
  struct age_watch w = { .clock.ahead_ns = 1 }; /* the next look finds a step of decades */

  (void)state;
  age_watch_look(&w);
  assert_int_equal(age_watch_age_ms(&w, clock_unix_ms() - HOUR_MS), -1);
  assert_in_range(age_watch_age_ms(&w, clock_unix_ms() - 1000), 1000, AGE_DOUBTFUL_MS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_age_is_that_of_the_timestamp),
    cmocka_unit_test(a_record_without_a_usable_timestamp_has_no_age),
    cmocka_unit_test(large_ages_are_doubtful_after_a_step_of_our_clock),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
