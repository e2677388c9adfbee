/* SPDX-License-Identifier: Apache-2.0 */
/* Work that threads divide: every element is done once, by several threads if there are idle ones, and errors come back.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/team/divide.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { ELEMENTS_MAX = 1000, HELPERS = 3, ROUNDS = 300 };

static uint64_t seed;

struct work {
  _Atomic int n_done[ELEMENTS_MAX];
  size_t n_piece;
  size_t failing;         /* this element fails; ELEMENTS_MAX: none does */
  size_t n_awaited;       /* threads that must be there before any goes on */
  _Atomic size_t n_there; /* threads that have begun a piece */
  pthread_t owner;        /* the thread that divides it */
  _Atomic bool is_helped; /* another thread has done a piece */
  _Atomic bool is_wrong;  /* a piece was too long, or its scratch memory not empty */
};

static err_code_t do_piece(void *context, size_t first, size_t end, struct region *scratch)
{
  struct work *w = context;
  uint64_t *numbers;

  if (end <= first || end - first > w->n_piece)
    w->is_wrong = true;
  if (!pthread_equal(pthread_self(), w->owner))
    w->is_helped = true;
  atomic_fetch_add(&w->n_there, 1);
  while (atomic_load(&w->n_there) < w->n_awaited)
    sched_yield();
  TRY(region_array(scratch, 100, sizeof *numbers, &numbers));
  for (size_t i = 0; i < 100; i++) {
    w->is_wrong = w->is_wrong || numbers[i] != 0;
    numbers[i] = first + 1;
  }
  for (size_t i = first; i < end; i++) {
    if (i == w->failing)
      FAIL(ERR_ITEM, "element %zu cannot be done", i);
    atomic_fetch_add(&w->n_done[i], 1);
  }
  return ERR_OK;
}

/* Divide n elements. Return whether another thread has helped. */
static bool divide_by(struct team *team, size_t n, size_t n_piece, size_t n_awaited)
{
  struct region scratch = { 0 };
  struct work w = { .n_piece = n_piece, .failing = ELEMENTS_MAX, .n_awaited = n_awaited, .owner = pthread_self() };

  assert_ok(divide(team, n, n_piece, do_piece, &w, &scratch));
  assert_false(w.is_wrong);
  for (size_t i = 0; i < ELEMENTS_MAX; i++)
    assert_int_equal(w.n_done[i], i < n);
  region_fini(&scratch);
  return w.is_helped;
}

static void each_element_is_done_once(void **state)
{
  struct dice dice = { seed };
  struct team *team;

  (void)state;
  assert_ok(team_open(HELPERS, HELPERS + 1, &team));
  for (size_t round = 0; round < ROUNDS; round++) {
    size_t n = dice_below(&dice, ELEMENTS_MAX + 1), n_piece = 1 + dice_below(&dice, ELEMENTS_MAX);
    divide_by(team, n, n_piece, 0);
    assert_false(divide_by(NULL, n, n_piece, 0));
  }
  team_close(&team);
}

/* No thread goes on before all are there. */
static void idle_helpers_take_part(void **state)
{
  struct team *team;

  (void)state;
  assert_ok(team_open(HELPERS, HELPERS + 1, &team));
  for (size_t round = 0; round < ROUNDS; round++)
    assert_true(divide_by(team, ELEMENTS_MAX, ELEMENTS_MAX / (HELPERS + 1), HELPERS + 1));
  team_close(&team);
}

static void fail_somewhere(struct team *team, struct dice *dice, size_t n_awaited)
{
  struct region scratch = { 0 };
  struct work w = { .n_piece = 10, .failing = dice_below(dice, ELEMENTS_MAX), .n_awaited = n_awaited };
  char message[64];

  snprintf(message, sizeof message, "element %zu cannot be done", w.failing);
  assert_fails(divide(team, ELEMENTS_MAX, 10, do_piece, &w, &scratch), ERR_ITEM, message);
  assert_int_equal(w.n_done[w.failing], 0);
  assert_false(w.is_wrong);
  region_fini(&scratch);
}

static void the_failure_of_any_thread_comes_back(void **state)
{
  struct dice dice = { seed + 1 };
  struct team *team;

  (void)state;
  assert_ok(team_open(HELPERS, HELPERS + 1, &team));
  for (size_t round = 0; round < ROUNDS; round++) {
    fail_somewhere(NULL, &dice, 0);
    fail_somewhere(team, &dice, 0);
    fail_somewhere(team, &dice, HELPERS + 1);
  }
  team_close(&team);
}

struct background {
  struct team *team;
  bool is_there, is_helped;
};

static void *divide_in_the_background(void *context)
{
  struct sched_param none = { 0 };
  struct background *b = context;

  b->is_there = pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) == 0;
  for (size_t round = 0; round < ROUNDS; round++) {
    struct region scratch = { 0 };
    struct work w = { .n_piece = 10, .failing = ELEMENTS_MAX, .owner = pthread_self() };
    b->is_there &= divide(b->team, ELEMENTS_MAX, 10, do_piece, &w, &scratch) == ERR_OK;
    b->is_helped |= w.is_helped;
    region_fini(&scratch);
  }
  return NULL;
}

static void a_thread_that_stands_back_works_alone(void **state)
{
  struct background b = { 0 };
  pthread_t thread;

  (void)state;
  assert_ok(team_open(HELPERS, HELPERS + 1, &b.team));
  assert_int_equal(pthread_create(&thread, NULL, divide_in_the_background, &b), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(b.is_there);
  assert_false(b.is_helped);
  team_close(&b.team);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_element_is_done_once),
    cmocka_unit_test(idle_helpers_take_part),
    cmocka_unit_test(the_failure_of_any_thread_comes_back),
    cmocka_unit_test(a_thread_that_stands_back_works_alone),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
