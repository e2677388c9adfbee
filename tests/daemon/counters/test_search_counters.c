/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of searches: a row for each method, however many threads begin it at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "daemon/counters/search_counters.h"

enum { N_THREADS = 4, N_ROUNDS = 2000, N_METHODS = 5 };

static struct search_counters *search_counters;
static size_t removed_below; /* generations with smaller numbers are not there */

static bool is_there(void *context, size_t number)
{
  (void)context;
  return number >= removed_below;
}

static struct answer answer_of(bool is_exact)
{
  return (struct answer){ .searched_us = 100, .receipt.is_exact = is_exact, .counts.items = 10, .counts.scored = 3 };
}

static void add(size_t space, const char *name, uint32_t arg, bool is_exact)
{
  struct answer answers[2] = { answer_of(is_exact), answer_of(false) };
  struct method method = { .args = { arg }, .n_args = 1 };

  snprintf(method.name, sizeof method.name, "%s", name);
  search_counters_add(search_counters, space, &method, answers, 2);
}

static void *add_all(void *context)
{
  (void)context;
  for (int i = 0; i < N_ROUNDS; i++) {
    char name[METHOD_NAME_MAX];
    snprintf(name, sizeof name, "method_%d", i % N_METHODS);
    add(1, name, 0, true);
  }
  return NULL;
}

static void threads_share_the_rows_of_their_methods(void **state)
{
  pthread_t threads[N_THREADS];
  size_t n;

  (void)state;
  assert_int_equal(search_counters_open(2, is_there, NULL, &search_counters), ERR_OK);
  for (int i = 0; i < N_THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, add_all, NULL), 0);
  for (int i = 0; i < N_THREADS; i++)
    pthread_join(threads[i], NULL);
  search_counters_of(search_counters, 0, &n);
  assert_int_equal(n, 0);
  const struct search_row *rows = search_counters_of(search_counters, 1, &n);
  assert_int_equal(n, N_METHODS);
  for (size_t i = 0; i < n; i++) {
    uint64_t batches = N_THREADS * N_ROUNDS / N_METHODS;
    assert_int_equal(rows[i].batch_us.sum, 100 * batches);
    assert_int_equal(rows[i].n_queries, 2 * batches);
    assert_int_equal(rows[i].n_proven, batches);
    assert_int_equal(rows[i].n_items, 20 * batches);
    assert_int_equal(rows[i].n_scored, 6 * batches);
  }
  search_counters_close(&search_counters);
}

static void clients_cannot_make_rows_by_arguments(void **state)
{
  size_t n;

  (void)state;
  assert_int_equal(search_counters_open(1, is_there, NULL, &search_counters), ERR_OK);
  for (uint32_t arg = 1; arg < 100; arg++)
    add(0, "average", arg, false);
  search_counters_of(search_counters, 0, &n);
  assert_int_equal(n, 1);
  search_counters_close(&search_counters);
}

static void rows_of_removed_generations_are_used_again_and_begin_at_zero(void **state)
{
  size_t n;

  (void)state;
  removed_below = 0;
  assert_int_equal(search_counters_open(2, is_there, NULL, &search_counters), ERR_OK);
  for (size_t number = 0; number < 50; number++) {
    removed_below = number > 0 ? number - 1 : 0;
    add(number, "exact", 0, true);
    add(number, "brute_force", 0, true);
    const struct search_row *rows = search_counters_of(search_counters, number, &n);
    assert_int_equal(n, 2);
    assert_string_equal(atomic_load(&rows[0].method), "exact");
    assert_int_equal(rows[0].n_queries, 2);
    assert_int_equal(rows[0].batch_us.sum, 100);
    search_counters_of(search_counters, number + 1, &n);
    assert_int_equal(n, 0);
  }
  removed_below = 0;
  add(50, "exact", 0, true); /* no room: the others are there */
  search_counters_of(search_counters, 50, &n);
  assert_int_equal(n, 0);
  search_counters_close(&search_counters);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_share_the_rows_of_their_methods),
    cmocka_unit_test(rows_of_removed_generations_are_used_again_and_begin_at_zero),
    cmocka_unit_test(clients_cannot_make_rows_by_arguments),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
