/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the pool of queries, and of the queue between the query thread and the workers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/queries/query_queue.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_QUERIES = 1000, MEMORY = 64 << 20 };

static uint64_t seed;

static const uint32_t weight = 1;

static struct query_queue *open_queue(size_t n_workers, size_t n_queries, size_t batch, size_t memory_bytes)
{
  struct fair_queue_config config = {
    .weights = &weight, .n_spaces = 1, .n_workers = n_workers, .n_queries = n_queries, .max_batch = batch,
    .batch_time_ns = CLOCK_NS_PER_S,
  };
  struct query_queue *q;

  assert_ok(query_queue_open(&config, memory_bytes, &q));
  return q;
}

static void the_pool_ends_at_its_bound_and_hands_nothing_out_twice(void **state)
{
  struct pending_query *queries[MAX_QUERIES];
  size_t n = 0;

  (void)state;
  struct query_queue *q = open_queue(1, 100, 8, MEMORY);
  while ((queries[n] = query_queue_take_query(q))) {
    for (size_t i = 0; i < n; i++)
      assert_ptr_not_equal(queries[i], queries[n]);
    n++;
  }
  assert_int_equal(n, 100);
  query_queue_free_query(q, queries[7]);
  assert_ptr_equal(query_queue_take_query(q), queries[7]);
  assert_null(query_queue_take_query(q));
  query_queue_close(&q);
  assert_null(q);
}

static void a_query_given_back_keeps_its_memory_and_forgets_its_content(void **state)
{
  struct query_queue *q = open_queue(1, 4, 1, MEMORY);
  struct span copy;

  (void)state;
  struct pending_query *query = query_queue_take_query(q);
  assert_ok(region_copy(&query->region, span_of_str("hello"), &copy));
  const uint8_t *was = copy.p;
  query_queue_free_query(q, query);
  assert_ptr_equal(query_queue_take_query(q), query); /* the last freed first: it is in the cache */
  assert_ok(region_copy(&query->region, span_of_str("hello"), &copy));
  assert_ptr_equal(copy.p, was);
  query_queue_close(&q);
}

static struct pending_query *take_large(struct query_queue *q, size_t bytes)
{
  struct pending_query *query = query_queue_take_query(q);
  uint8_t *p;

  assert_non_null(query);
  assert_ok(region_array(&query->region, bytes, 1, &p));
  query_queue_weigh(q, query);
  assert_true(query->bytes >= bytes);
  return query;
}

static void the_memory_of_large_queries_is_given_back(void **state)
{
  enum { N = 50, LARGE = 1 << 20 };
  struct query_queue *q = open_queue(1, 2 * N, 1, (size_t)N * LARGE);
  struct pending_query *queries[N];

  (void)state;
  for (int round = 0; round < 3; round++) {
    size_t n = 0, kept = 0;
    for (; n < N; n++)
      queries[n] = take_large(q, LARGE);
    assert_null(query_queue_take_query(q)); /* together they have reached the bound */
    query_queue_free_query(q, queries[--n]);
    queries[n++] = take_large(q, LARGE); /* one more is accepted: it reaches the bound again */
    assert_null(query_queue_take_query(q));
    for (size_t i = 0; i < n; i++) {
      query_queue_free_query(q, queries[i]);
      kept += region_bytes(&queries[i]->region);
    }
    assert_true(kept <= (size_t)N * (64 << 10));
  }
  query_queue_close(&q);
}

/* Take queries of `bytes` each for the background until no more are admitted, and give them back. Returns how many. */
static size_t fill_background(struct query_queue *q, size_t bytes)
{
  struct pending_query *taken[MAX_QUERIES];
  size_t n = 0;
  bool has_room = true;

  while (has_room) {
    taken[n] = take_large(q, bytes);
    has_room = query_queue_take_background(q, taken[n++]);
  }
  query_queue_free_query(q, take_large(q, bytes)); /* the others still have room */
  for (size_t i = 0; i < n; i++)
    query_queue_free_query(q, taken[i]);
  return n - 1;
}

static void background_queries_have_a_quarter_of_the_pool(void **state)
{
  struct query_queue *q = open_queue(1, 400, 8, MEMORY);

  (void)state;
  for (int round = 0; round < 3; round++) {
    assert_int_equal(fill_background(q, 8), 100);
    assert_in_range(fill_background(q, MEMORY / 64), 15, 16); /* and of its memory */
  }
  query_queue_close(&q);
}

static struct pending_query *push_one(struct query_queue *q)
{
  struct pending_query *query = query_queue_take_query(q);

  assert_non_null(query);
  query_queue_push(q, query);
  return query;
}

static void an_ended_queue_is_emptied_first_until_its_time_is_over(void **state)
{
  struct pending_query *batch[4];
  struct query_batch taken = { .queries = batch };

  (void)state;
  struct query_queue *q = open_queue(1, 100, 4, MEMORY);
  struct pending_query *first = push_one(q);
  for (int i = 0; i < 8; i++)
    push_one(q);
  query_queue_end(q, INT64_MAX);
  query_queue_end(q, INT64_MAX);
  assert_true(query_queue_pop(q, &taken)); /* the class was never measured: one query */
  assert_int_equal(taken.n, 1);
  assert_ptr_equal(taken.queries[0], first);
  query_queue_finish(q, &taken, 1, CLOCK_NS_PER_MS);
  assert_true(query_queue_pop(q, &taken));
  assert_int_equal(taken.n, 4);
  query_queue_finish(q, &taken, 4, CLOCK_NS_PER_MS);
  query_queue_end(q, clock_now_ns());
  assert_false(query_queue_pop(q, &taken)); /* four wait, but the time is up */
  size_t n = 0;
  for (struct pending_query *left = query_queue_take_all(q); left; left = left->next)
    n++;
  assert_int_equal(n, 4);
  query_queue_close(&q);
}

static struct query_queue *shared;

static void *pop_nothing(void *context)
{
  struct pending_query *batch[1];
  struct query_batch taken = { .queries = batch };

  (void)context;
  return query_queue_pop(shared, &taken) ? context : NULL;
}

static void the_end_wakes_every_worker(void **state)
{
  pthread_t threads[4];
  void *popped;

  (void)state;
  shared = open_queue(4, 10, 1, MEMORY);
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, pop_nothing, &popped), 0);
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  query_queue_end(shared, INT64_MAX);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &popped);
    assert_null(popped);
  }
  query_queue_close(&shared);
}

/* ---- One producer and several workers: every query arrives once and intact ---- */

enum { WORKERS = 3, BATCH = 5, POOL = 50, TOTAL = 6000 };

static _Atomic uint8_t n_seen[TOTAL];
static _Atomic size_t n_torn;

static void *work(void *context)
{
  struct pending_query *batch[BATCH];
  struct query_batch taken = { .queries = batch };

  (void)context;
  while (query_queue_pop(shared, &taken)) {
    assert_true(taken.n >= 1 && taken.n <= BATCH);
    for (size_t i = 0; i < taken.n; i++) {
      const struct pending_query *query = taken.queries[i];
      uint32_t number;
      memcpy(&number, query->key.p, sizeof number);
      atomic_fetch_add(&n_torn, number != query->ticket || number >= TOTAL || query->key.n != 4 + number % 50);
      atomic_fetch_add(&n_seen[number % TOTAL], 1);
    }
    query_queue_finish(shared, &taken, taken.n, 1000);
  }
  return NULL;
}

static struct pending_query *make_query(uint32_t number, uint32_t method)
{
  struct pending_query *query;
  uint8_t bytes[64] = { 0 };

  while (!(query = query_queue_take_query(shared)))
    clock_sleep_ns(10 * CLOCK_NS_PER_US);
  memcpy(bytes, &number, sizeof number);
  query->ticket = number;
  query->method = (struct method){ .name = "m", .args = { method } };
  assert_ok(region_copy(&query->region, span_of(bytes, 4 + number % 50), &query->key));
  return query;
}

static void every_query_reaches_one_worker_once(void **state)
{
  struct dice dice = { seed };
  pthread_t threads[WORKERS];
  struct pending_query *kept = NULL;

  (void)state;
  shared = open_queue(WORKERS, POOL, BATCH, MEMORY);
  for (int i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
  for (uint32_t number = 0; number < TOTAL; number++) {
    query_queue_push(shared, make_query(number, (uint32_t)dice_below(&dice, 3)));
    if (dice_below(&dice, 20) == 0 && (kept = query_queue_take_query(shared))) /* this one is freed without a search */
      query_queue_free_query(shared, kept);
  }
  query_queue_end(shared, INT64_MAX);
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(n_torn, 0);
  for (size_t i = 0; i < TOTAL; i++)
    assert_int_equal(n_seen[i], 1);
  size_t n_free = 0;
  while (query_queue_take_query(shared))
    n_free++;
  assert_int_equal(n_free, POOL); /* all are back in the pool */
  query_queue_close(&shared);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_pool_ends_at_its_bound_and_hands_nothing_out_twice),
    cmocka_unit_test(a_query_given_back_keeps_its_memory_and_forgets_its_content),
    cmocka_unit_test(the_memory_of_large_queries_is_given_back),
    cmocka_unit_test(background_queries_have_a_quarter_of_the_pool),
    cmocka_unit_test(an_ended_queue_is_emptied_first_until_its_time_is_over),
    cmocka_unit_test(the_end_wakes_every_worker),
    cmocka_unit_test(every_query_reaches_one_worker_once),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
