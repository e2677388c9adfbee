/* SPDX-License-Identifier: Apache-2.0 */
/* An errand runs beside its caller, and its failure reaches the caller when the caller asks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/errand.h"

struct meeting {
  _Atomic bool has_begun;
  _Atomic bool may_end;
  err_code_t result;
};

static err_code_t meet(void *context)
{
  struct meeting *m = context;

  atomic_store(&m->has_begun, true);
  while (!atomic_load(&m->may_end))
    ;
  if (m->result == ERR_OK)
    return ERR_OK;
  FAIL(m->result, "the errand failed");
}

/* Begin an errand, fail here while it runs, and end it. */
static void run_beside(struct meeting *m, struct errand *errand)
{
  assert_true(errand_begin("errand", meet, m, errand));
  while (!atomic_load(&m->has_begun))
    ;
  assert_int_equal(err_set(ERR_WIRE, "here", 1, "the caller failed"), ERR_WIRE);
  atomic_store(&m->may_end, true);
  errand_join(errand);
}

static void an_errand_runs_beside_its_caller(void **state)
{
  struct meeting m = { .result = ERR_OK };
  struct errand errand;

  (void)state;
  run_beside(&m, &errand);
  assert_int_equal(err_give_back(&errand.failure), ERR_OK);
  assert_string_equal(err_message(), "the caller failed");
}

static void its_failure_waits_for_the_caller(void **state)
{
  struct meeting m = { .result = ERR_STORE };
  struct err_kept own;
  struct errand errand;

  (void)state;
  run_beside(&m, &errand);
  err_keep(ERR_WIRE, &own);
  assert_int_equal(err_give_back(&errand.failure), ERR_STORE);
  assert_string_equal(err_message(), "the errand failed");
  assert_int_equal(err_give_back(&own), ERR_WIRE);
  assert_string_equal(err_message(), "the caller failed");
  assert_string_equal(err_origin(), "here:1");
}

/* ---- Leaving ---- */

static void note_drop(void *context)
{
  *(_Atomic bool *)context = true;
}

static err_code_t end_at_once(void *context)
{
  (void)context;
  return ERR_OK;
}

static void an_errand_that_is_left_is_dropped_when_it_ends(void **state)
{
  static struct meeting m = { .result = ERR_OK };
  static struct errand errand;

  (void)state;
  assert_true(errand_begin("errand", meet, &m, &errand));
  errand_leave(&errand, note_drop); /* the first member of its context is the flag */
  while (!atomic_load(&m.has_begun))
    ;
  assert_int_equal(errand_n_left(), 1);
  atomic_store(&m.has_begun, false);
  atomic_store(&m.may_end, true);
  while (errand_n_left() > 0)
    ;
  assert_true(atomic_load(&m.has_begun));
}

static void an_errand_that_has_ended_is_dropped_when_it_is_left(void **state)
{
  _Atomic bool is_dropped = false;
  struct errand errand;

  (void)state;
  assert_true(errand_begin("errand", end_at_once, &is_dropped, &errand));
  while (!errand_is_over(&errand))
    ;
  errand_leave(&errand, note_drop);
  assert_true(atomic_load(&is_dropped));
  assert_int_equal(errand_n_left(), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_errand_runs_beside_its_caller),
    cmocka_unit_test(its_failure_waits_for_the_caller),
    cmocka_unit_test(an_errand_that_is_left_is_dropped_when_it_ends),
    cmocka_unit_test(an_errand_that_has_ended_is_dropped_when_it_is_left),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
