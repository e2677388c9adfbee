/* SPDX-License-Identifier: Apache-2.0 */
/* Closing clients: closings that end at once, later, and never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_closing.h"
#include "tests/support/log_watch.h"

static _Atomic bool may_end;
static _Atomic int n_closed;

static void close_at_once(void *object)
{
  (void)object;
  atomic_fetch_add(&n_closed, 1);
}

static void close_when_told(void *object)
{
  while (!atomic_load(&may_end))
    clock_sleep_ns(CLOCK_NS_PER_MS);
  close_at_once(object);
}

static void a_closing_is_waited_for(void **state)
{
  (void)state;
  kafka_closing_run("short", close_at_once, NULL);
  assert_int_equal(atomic_load(&n_closed), 1);
  assert_int_equal(kafka_closing_log_left(), 0);
}

static void a_client_that_nobody_waits_for_is_named_by_the_next_closing(void **state)
{
  (void)state;
  kafka_closing_begin("abandoned", close_when_told, NULL);
  kafka_closing_begin("short", close_at_once, NULL);
  assert_false(log_watch_has("event=kafka_client_left"));
  clock_sleep_ns(3 * CLOCK_NS_PER_S + 10 * CLOCK_NS_PER_MS);
  kafka_closing_begin("short", close_at_once, NULL);
  assert_true(log_watch_has("event=kafka_client_left client=abandoned"));
  atomic_store(&may_end, true);
  assert_int_equal(kafka_closing_wait(clock_now_ns() + 60 * CLOCK_NS_PER_S), 0);
  atomic_store(&may_end, false);
}

static size_t count_mappings(void)
{
  FILE *maps = fopen("/proc/self/maps", "r");
  size_t n = 0;

  assert_non_null(maps);
  for (int c; (c = fgetc(maps)) != EOF;)
    n += c == '\n';
  fclose(maps);
  return n;
}

/* The stack of a thread and its guard are two mappings. */
static void clients_that_nobody_waits_for_leave_no_threads_behind(void **state)
{
  enum { N = 200 };
  size_t before = count_mappings();

  (void)state;
  for (int i = 0; i < N; i++) {
    atomic_store(&n_closed, 0);
    kafka_closing_begin("abandoned", close_at_once, NULL);
    while (atomic_load(&n_closed) == 0)
      clock_sleep_ns(CLOCK_NS_PER_MS / 10);
  }
  assert_true(count_mappings() < before + N);
  assert_int_equal(kafka_closing_wait(clock_now_ns() + 60 * CLOCK_NS_PER_S), 0);
}

static void closings_run_side_by_side_and_one_that_never_ends_is_left(void **state)
{
  int64_t began_ns = clock_now_ns();

  (void)state;
  atomic_store(&n_closed, 0);
  kafka_closing_together();
  kafka_closing_run("endless", close_when_told, NULL);
  kafka_closing_run("short", close_at_once, NULL);
  kafka_closing_run("endless", close_when_told, NULL);
  assert_int_equal(kafka_closing_wait(clock_now_ns() + 300 * CLOCK_NS_PER_MS), 2);
  assert_int_equal(atomic_load(&n_closed), 1);
  assert_int_equal(kafka_closing_log_left(), 2);
  assert_true(clock_now_ns() - began_ns < 10 * CLOCK_NS_PER_S);

  atomic_store(&may_end, true);
  assert_int_equal(kafka_closing_wait(clock_now_ns() + 60 * CLOCK_NS_PER_S), 0);
  assert_int_equal(atomic_load(&n_closed), 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_closing_is_waited_for),
    cmocka_unit_test(a_client_that_nobody_waits_for_is_named_by_the_next_closing),
    cmocka_unit_test(clients_that_nobody_waits_for_leave_no_threads_behind),
    cmocka_unit_test(closings_run_side_by_side_and_one_that_never_ends_is_left),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
