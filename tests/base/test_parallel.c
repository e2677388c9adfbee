/* SPDX-License-Identifier: Apache-2.0 */
/* Threads share one piece of work, and the failure of one of them reaches the caller with its message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/parallel.h"

enum { UNITS = 20000 };

struct work {
  _Atomic size_t next;
  _Atomic size_t n_calls;
  uint8_t done[UNITS];
  size_t fails_at; /* this unit fails */
};

static err_code_t do_units(void *context)
{
  struct work *w = context;
  size_t i;

  atomic_fetch_add(&w->n_calls, 1);
  while ((i = atomic_fetch_add(&w->next, 1)) < UNITS) {
    w->done[i]++;
    if (i == w->fails_at)
      FAIL(ERR_MODEL, "unit %zu is wrong", i);
  }
  return ERR_OK;
}

static void every_unit_is_done_once(void **state)
{
  (void)state;
  for (size_t n = 1; n <= 9; n++) {
    struct work w = { .fails_at = UNITS };
    assert_int_equal(parallel_run(n, do_units, &w), ERR_OK);
    assert_int_equal(w.n_calls, n);
    for (size_t i = 0; i < UNITS; i++)
      assert_int_equal(w.done[i], 1);
  }
}

static void failure_of_any_thread_is_the_newest_one_of_the_caller(void **state)
{
  char message[64];

  (void)state;
  for (size_t i = 0; i < 40; i++) {
    struct work w = { .fails_at = i * 499 };
    snprintf(message, sizeof message, "unit %zu is wrong", w.fails_at);
    assert_int_equal(parallel_run(3, do_units, &w), ERR_MODEL);
    assert_string_equal(err_message(), message);
    assert_non_null(strstr(err_origin(), "test_parallel.c:"));
  }
}

static void number_of_threads_is_limited(void **state)
{
  struct work w = { .fails_at = UNITS };

  (void)state;
  assert_int_equal(parallel_run(0, do_units, &w), ERR_OK);
  assert_int_equal(w.n_calls, 1);
  assert_int_equal(parallel_run(1000, do_units, &w), ERR_OK);
  assert_int_equal(w.n_calls, 1 + PARALLEL_MAX);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_unit_is_done_once),
    cmocka_unit_test(failure_of_any_thread_is_the_newest_one_of_the_caller),
    cmocka_unit_test(number_of_threads_is_limited),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
