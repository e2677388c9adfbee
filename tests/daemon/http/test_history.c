/* SPDX-License-Identifier: Apache-2.0 */
/* The history: rates from counters, durations, and a ring that has been filled more than once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/http/history.h"

static struct counters counters;
static struct history history;
static struct moment moments[HISTORY_MAX];

static int set_up(void **state)
{
  (void)state;
  counters = (struct counters){ 0 };
  history = (struct history){ 0 };
  history_init(&history);
  counters_add(&counters.queries, 1000); /* before the first moment: no rate counts them */
  history_add(&history, &counters, 0);
  return 0;
}

/* Let the newest moment be a step ago. */
static void step_back(void)
{
  history.at_ns -= HISTORY_STEP_S * CLOCK_NS_PER_S;
}

static void test_when_a_moment_is_due(void **state)
{
  (void)state;
  assert_int_equal(history_get(&history, moments), 0);
  assert_false(history_is_due(&history));
  step_back();
  assert_true(history_is_due(&history));
}

static void test_rates_and_durations(void **state)
{
  (void)state;
  step_back();
  counters_add(&counters.queries, 50);
  counters_add(&counters.applied, 20);
  counters_add(&counters.deleted, 5);
  counters_add(&counters.dead_letters[LETTER_TOO_LARGE], 10);
  for (int i = 0; i < 100; i++)
    hist_add(&counters.answer_us, 3000);
  history_add(&history, &counters, 7);
  assert_int_equal(history_get(&history, moments), 1);
  assert_float_equal(moments[0].queries_per_s, 10, 0.5); /* a little more than a step has passed */
  assert_float_equal(moments[0].updates_per_s, 5, 0.25);
  assert_float_equal(moments[0].letters_per_s, 2, 0.1);
  assert_float_equal(moments[0].errors_per_s, 0, 0);
  assert_float_equal(moments[0].answer_p50_ms, 3, 0.75);
  assert_float_equal(moments[0].visible_p50_ms, 0, 0);
  assert_float_equal(moments[0].lag_records, 7, 0);
}

static void test_the_newest_moments_stay_in_order(void **state)
{
  (void)state;
  for (uint64_t i = 0; i < 2 * HISTORY_MAX + 3; i++)
    history_add(&history, &counters, i);
  assert_int_equal(history_get(&history, moments), HISTORY_MAX);
  for (size_t i = 0; i < HISTORY_MAX; i++)
    assert_int_equal((size_t)moments[i].lag_records, HISTORY_MAX + 3 + i);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_when_a_moment_is_due, set_up),
    cmocka_unit_test_setup(test_rates_and_durations, set_up),
    cmocka_unit_test_setup(test_the_newest_moments_stay_in_order, set_up),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
