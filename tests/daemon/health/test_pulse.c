/* SPDX-License-Identifier: Apache-2.0 */
/* Pulses: a stalled thread is found; one that waits for work, or has no pulse, is not. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/errand.h"
#include "daemon/health/pulse.h"

static struct pulses all;
static struct pulse ours, others;

static void *beat_once(void *unused)
{
  char name[16];

  pulse_begin(&all, &others, "other");
  pulse_beat();
  assert_int_equal(pthread_getname_np(pthread_self(), name, sizeof name), 0);
  assert_string_equal(name, "other");
  return unused;
}

static void beating_without_a_pulse_does_nothing(void **state)
{
  (void)state;
  pulse_beat();
  pulse_rest();
  assert_null(pulses_find_stalled(&all, 0));
}

static void a_stalled_thread_is_found_and_one_that_waits_for_work_is_not(void **state)
{
  pthread_t thread;

  (void)state;
  pulse_begin(&all, &ours, "ours");
  assert_null(pulses_find_stalled(&all, 60 * CLOCK_NS_PER_S));
  clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_string_equal(pulses_find_stalled(&all, CLOCK_NS_PER_MS), "ours");
  pulse_rest();
  assert_null(pulses_find_stalled(&all, CLOCK_NS_PER_MS));

  assert_int_equal(pthread_create(&thread, NULL, beat_once, NULL), 0);
  pthread_join(thread, NULL);
  clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_string_equal(pulses_find_stalled(&all, CLOCK_NS_PER_MS), "other");
  pulse_beat();
  assert_string_equal(pulses_find_stalled(&all, CLOCK_NS_PER_MS), "other");
}

static err_code_t note_progress(void *unused)
{
  (void)unused;
  progress_note();
  return ERR_OK;
}

static void an_errand_beats_the_pulse_of_the_thread_that_began_it(void **state)
{
  struct errand errand;
  struct pulses listed = { NULL };
  struct pulse pulse;

  (void)state;
  pulse_begin(&listed, &pulse, "third");
  atomic_store(&pulse.beat_ns, 1);
  assert_true(errand_begin("errand", note_progress, NULL, &errand));
  errand_join(&errand);
  assert_null(pulses_find_stalled(&listed, 60 * CLOCK_NS_PER_S));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(beating_without_a_pulse_does_nothing),
    cmocka_unit_test(a_stalled_thread_is_found_and_one_that_waits_for_work_is_not),
    cmocka_unit_test(an_errand_beats_the_pulse_of_the_thread_that_began_it),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
