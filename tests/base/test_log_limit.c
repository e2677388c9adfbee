/* SPDX-License-Identifier: Apache-2.0 */
/* The limit on repeated events, by a clock of the test: what is written, what is counted, and when the count comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log_limit.h"

static const int64_t window_ns = LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S;
static struct log_limit limit;
static int64_t now_ns;
static struct log_repeat repeat;

static int begin(void **state)
{
  (void)state;
  limit = (struct log_limit){ 0 };
  now_ns = 12345;
  return 0;
}

static bool allows(enum log_level level, const char *event, const char *pairs)
{
  return log_limit_allows(&limit, &(struct log_record){ level, event, pairs }, now_ns);
}

/* Log the event n times, each time with another offset, and return how often it was allowed. */
static size_t say(size_t n, const char *event, const char *reason)
{
  char pairs[128];
  size_t n_allowed = 0;

  for (size_t i = 0; i < n; i++) {
    snprintf(pairs, sizeof pairs, "offset=%zu reason=\"%s\"", i, reason);
    n_allowed += allows(LOG_LEVEL_WARN, event, pairs);
  }
  return n_allowed;
}

static void the_same_reason_is_written_so_often_and_then_once_with_its_count(void **state)
{
  (void)state;
  assert_int_equal(say(500, "dead_letter", "too short"), LOG_LIMIT_SAME);
  now_ns += window_ns - 1;
  assert_false(log_limit_pop(&limit, now_ns, &repeat));
  now_ns++;
  assert_true(log_limit_pop(&limit, now_ns, &repeat));
  assert_int_equal(repeat.n_left_out, 500 - LOG_LIMIT_SAME);
  assert_int_equal(repeat.level, LOG_LEVEL_WARN);
  assert_string_equal(repeat.event, "dead_letter");
  assert_string_equal(repeat.pairs, "offset=499 reason=\"too short\"");
  assert_false(log_limit_pop(&limit, now_ns, &repeat));
}

static void while_it_goes_on_each_window_has_one_line(void **state)
{
  (void)state;
  say(100, "dead_letter", "too short");
  for (int i = 0; i < 5; i++) {
    now_ns += window_ns;
    assert_true(log_limit_pop(&limit, now_ns, &repeat));
    assert_int_equal(say(7, "dead_letter", "too short"), 0);
  }
  now_ns += window_ns;
  assert_true(log_limit_pop(&limit, now_ns, &repeat));
  assert_int_equal(repeat.n_left_out, 7);
}

static void after_a_quiet_window_it_is_written_again(void **state)
{
  (void)state;
  say(100, "dead_letter", "too short");
  now_ns += window_ns;
  assert_true(log_limit_pop(&limit, now_ns, &repeat));
  now_ns += window_ns;
  assert_false(log_limit_pop(&limit, now_ns, &repeat));
  assert_int_equal(say(100, "dead_letter", "too short"), LOG_LIMIT_SAME);
}

static void a_count_is_not_lost_if_nobody_takes_it_in_time(void **state)
{
  (void)state;
  say(30, "dead_letter", "too short");
  now_ns += 3 * window_ns;
  assert_int_equal(say(10, "dead_letter", "too short"), 0);
  assert_true(log_limit_pop(&limit, now_ns, &repeat));
  assert_int_equal(repeat.n_left_out, 40 - LOG_LIMIT_SAME);
}

static void another_reason_and_another_event_have_lines_of_their_own(void **state)
{
  (void)state;
  say(100, "dead_letter", "too short");
  assert_int_equal(say(3, "dead_letter", "too long"), 3);
  assert_int_equal(say(3, "reply_not_sent", "too short"), 3);
}

static void without_a_reason_the_whole_text_counts(void **state)
{
  (void)state;
  for (int i = 0; i < LOG_LIMIT_SAME; i++)
    assert_true(allows(LOG_LEVEL_ERROR, "thread_still", "thread=catalogue"));
  assert_false(allows(LOG_LEVEL_ERROR, "thread_still", "thread=catalogue"));
  assert_true(allows(LOG_LEVEL_ERROR, "thread_still", "thread=query"));
}

static void a_warning_with_ever_other_reasons_has_a_limit_too(void **state)
{
  char reason[32];
  size_t n_allowed = 0, n_counted = 0;

  (void)state;
  for (int i = 0; i < 1000; i++) {
    snprintf(reason, sizeof reason, "key %d", i);
    n_allowed += say(1, "dead_letter", reason);
  }
  assert_int_equal(n_allowed, LOG_LIMIT_EVENT);
  assert_int_equal(say(1, "reply_not_sent", "a"), 1);
  now_ns += window_ns;
  while (log_limit_pop(&limit, now_ns, &repeat))
    n_counted += repeat.n_left_out;
  assert_int_equal(n_allowed + n_counted, 1000);
}

static void information_that_differs_and_debug_lines_have_no_limit(void **state)
{
  char pairs[32];

  (void)state;
  for (int i = 0; i < 10 * LOG_LIMIT_EVENT; i++) {
    snprintf(pairs, sizeof pairs, "partition=%d", i);
    assert_true(allows(LOG_LEVEL_INFO, "partition", pairs));
    assert_true(allows(LOG_LEVEL_DEBUG, "kafka_client", "text=same"));
  }
}

static void many_other_lines_do_not_lift_the_limit(void **state)
{
  char reason[32];

  (void)state;
  assert_int_equal(say(LOG_LIMIT_SAME + 1, "reply_not_sent", "away"), LOG_LIMIT_SAME);
  for (int i = 0; i < 10 * LOG_LIMIT_KEYS; i++) {
    snprintf(reason, sizeof reason, "partition=%d", i);
    assert_true(allows(LOG_LEVEL_INFO, "partition", reason));
  }
  assert_int_equal(say(5, "reply_not_sent", "away"), 0);
  assert_int_equal(say(2 * LOG_LIMIT_SAME, "dead_letter", "too short"), LOG_LIMIT_SAME);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_same_reason_is_written_so_often_and_then_once_with_its_count, begin),
    cmocka_unit_test_setup(while_it_goes_on_each_window_has_one_line, begin),
    cmocka_unit_test_setup(after_a_quiet_window_it_is_written_again, begin),
    cmocka_unit_test_setup(a_count_is_not_lost_if_nobody_takes_it_in_time, begin),
    cmocka_unit_test_setup(another_reason_and_another_event_have_lines_of_their_own, begin),
    cmocka_unit_test_setup(without_a_reason_the_whole_text_counts, begin),
    cmocka_unit_test_setup(a_warning_with_ever_other_reasons_has_a_limit_too, begin),
    cmocka_unit_test_setup(many_other_lines_do_not_lift_the_limit, begin),
    cmocka_unit_test_setup(information_that_differs_and_debug_lines_have_no_limit, begin),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
