/* SPDX-License-Identifier: Apache-2.0 */
/* A thread stands back and returns; it is brought forward if it does so for long; it does not go where it
 * could not return from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stand_back.h"
#include "base/clock.h"

enum { NOBODY = 65534, HOUR_S = 3600, IN_VAIN = 99 };

static int policy(void)
{
  return sched_getscheduler(0);
}

/* Say that something cannot be tried here. CI must be able to try it. */
static void skip_aloud(const char *why)
{
  print_message("skipped: %s\n", why);
  assert_null(getenv("CI"));
  skip();
}

static void init_or_skip(struct stand_back *b)
{
  if (!stand_back_init(b))
    skip_aloud("this process may not raise priorities again");
}

static void a_thread_goes_and_returns(void **state)
{
  struct stand_back b = { 0 };

  (void)state;
  init_or_skip(&b);
  for (int i = 0; i < 2; i++) {
    stand_back_enter(&b);
    assert_int_equal(policy(), SCHED_IDLE);
    stand_back_leave(&b);
    assert_int_equal(policy(), SCHED_OTHER);
  }
}

static void leaving_without_entering_does_nothing(void **state)
{
  struct stand_back b = { 0 };

  (void)state;
  stand_back_enter(&b);
  assert_int_equal(policy(), SCHED_OTHER);
  stand_back_leave(&b);
  stand_back_relieve(&b, 0);
  assert_int_equal(policy(), SCHED_OTHER);
}

static void *relieve(void *b)
{
  stand_back_relieve(b, HOUR_S * CLOCK_NS_PER_S);
  return NULL;
}

static void *relieve_soon(void *b)
{
  clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  stand_back_relieve(b, CLOCK_NS_PER_MS);
  return NULL;
}

static void *relieve_at_once(void *b)
{
  stand_back_relieve(b, -1);
  return NULL;
}

static void call(void *(*body)(void *), struct stand_back *b)
{
  pthread_t thread;

  assert_int_equal(pthread_create(&thread, NULL, body, b), 0);
  pthread_join(thread, NULL);
}

static void another_thread_brings_it_forward_after_the_limit(void **state)
{
  struct stand_back b = { 0 };

  (void)state;
  init_or_skip(&b);
  stand_back_enter(&b);
  call(relieve, &b);
  assert_int_equal(policy(), SCHED_IDLE);
  call(relieve_at_once, &b);
  assert_int_equal(policy(), SCHED_OTHER);
  stand_back_leave(&b);
  assert_int_equal(policy(), SCHED_OTHER);
  stand_back_enter(&b); /* it may go again at once: ten times the limit are over */
  assert_int_equal(policy(), SCHED_IDLE);
  stand_back_leave(&b);
}

static void who_was_brought_forward_stays_there_for_a_while(void **state)
{
  struct stand_back b = { 0 };

  (void)state;
  init_or_skip(&b);
  stand_back_enter(&b);
  call(relieve_soon, &b);
  stand_back_leave(&b);
  int64_t until_ns = atomic_load(&b.front_until_ns);
  assert_true(until_ns > 0);
  stand_back_enter(&b);
  int meanwhile = policy();
  assert_true(meanwhile == SCHED_OTHER || clock_now_ns() >= until_ns);
  stand_back_leave(&b);
  clock_sleep_ns(10 * CLOCK_NS_PER_MS);
  stand_back_enter(&b);
  assert_int_equal(policy(), SCHED_IDLE);
  stand_back_leave(&b);
}

static void *end(void *b)
{
  stand_back_end(b);
  return NULL;
}

static void who_was_brought_forward_for_good_does_not_go_again(void **state)
{
  (void)state;
  for (int is_in = 0; is_in < 2; is_in++) {
    struct stand_back b = { 0 };
    init_or_skip(&b);
    if (is_in)
      stand_back_enter(&b);
    call(end, &b);
    assert_int_equal(policy(), SCHED_OTHER);
    stand_back_leave(&b);
    call(relieve_at_once, &b);
    stand_back_enter(&b);
    assert_int_equal(policy(), SCHED_OTHER);
    stand_back_leave(&b);
  }
}

static void a_thread_in_front_is_left_alone(void **state)
{
  struct stand_back b = { 0 };

  (void)state;
  init_or_skip(&b);
  stand_back_enter(&b);
  stand_back_leave(&b);
  assert_true(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) == 0);
  call(relieve_at_once, &b);
  assert_int_equal(policy(), SCHED_BATCH);
  stand_back_init(&b); /* it returns to what it was */
  stand_back_enter(&b);
  assert_int_equal(policy(), SCHED_IDLE);
  stand_back_leave(&b);
  assert_int_equal(policy(), SCHED_BATCH);
  assert_true(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }) == 0);
}

/* Return the policies of a process of a user without rights: while it stands back, and after. IN_VAIN: the limit cannot
 * be set here. */
static int policies_of_nobody(rlim_t nice)
{
  struct rlimit limit = { nice, nice };
  int status;
  pid_t child = fork();

  assert_true(child >= 0);
  if (child == 0) {
    struct stand_back b = { 0 };
    if (setrlimit(RLIMIT_NICE, &limit) != 0 || setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
      _exit(IN_VAIN);
    stand_back_init(&b);
    stand_back_enter(&b);
    int in = policy();
    stand_back_leave(&b);
    _exit(10 * in + policy());
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void who_could_not_return_does_not_go(void **state)
{
  int policies = policies_of_nobody(0);

  (void)state;
  if (policies == IN_VAIN)
    skip_aloud("this process cannot become that of another user");
  assert_int_equal(policies, 10 * SCHED_OTHER + SCHED_OTHER);
}

static void a_limit_of_the_nice_value_lets_it_go(void **state)
{
  int policies = policies_of_nobody(20);

  (void)state;
  if (policies == IN_VAIN) { /* in CI too: without CAP_SYS_RESOURCE nobody may */
    print_message("skipped: this process may not raise RLIMIT_NICE\n");
    skip();
  }
  assert_int_equal(policies, 10 * SCHED_IDLE + SCHED_OTHER);
}

static void *lower(void *nice)
{
  stand_back_for_good();
  *(int *)nice = getpriority(PRIO_PROCESS, 0);
  return NULL;
}

static void only_the_calling_thread_gets_a_lower_priority(void **state)
{
  int before = getpriority(PRIO_PROCESS, 0), nice = 0;
  pthread_t thread;

  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, lower, &nice), 0);
  pthread_join(thread, NULL);
  assert_int_equal(nice, before > 10 ? before : 10);
  assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_thread_goes_and_returns),
    cmocka_unit_test(leaving_without_entering_does_nothing),
    cmocka_unit_test(another_thread_brings_it_forward_after_the_limit),
    cmocka_unit_test(who_was_brought_forward_stays_there_for_a_while),
    cmocka_unit_test(who_was_brought_forward_for_good_does_not_go_again),
    cmocka_unit_test(a_thread_in_front_is_left_alone),
    cmocka_unit_test(who_could_not_return_does_not_go),
    cmocka_unit_test(a_limit_of_the_nice_value_lets_it_go),
    cmocka_unit_test(only_the_calling_thread_gets_a_lower_priority),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
