/* Pools of queries and jobs, and the queue between the query reader and the workers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/query_job.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_QUERIES = 1000 };

static uint64_t seed;

static void pools_end_at_their_bounds_and_hand_nothing_out_twice(void **state)
{
  static const size_t shapes[][2] = { { 1, 1 }, { 1, 32 }, { 4, 8 } };

  (void)state;
  for (size_t s = 0; s < 3; s++) {
    size_t n_workers = shapes[s][0], batch = shapes[s][1], n_jobs = 3 * n_workers + 1;
    struct pending_query *queries[MAX_QUERIES];
    struct query_job *jobs[MAX_QUERIES];
    struct job_queue *q;
    size_t n = 0;
    assert_ok(job_queue_open(n_workers, batch, &q));
    while ((queries[n] = job_queue_take_query(q))) {
      for (size_t i = 0; i < n; i++)
        assert_ptr_not_equal(queries[i], queries[n]);
      n++;
    }
    assert_int_equal(n, n_jobs * batch);
    for (size_t i = 0; i < n_jobs; i++) {
      jobs[i] = job_queue_take_job(q);
      assert_non_null(jobs[i]);
      assert_int_equal(jobs[i]->n, 0);
      for (size_t j = 0; j < i; j++)
        assert_ptr_not_equal(jobs[j], jobs[i]);
      for (size_t j = 0; j < batch; j++)
        jobs[i]->queries[jobs[i]->n++] = queries[i * batch + j]; /* arrays of jobs do not overlap */
    }
    assert_null(job_queue_take_job(q));
    for (size_t i = 0; i < n_jobs; i++)
      for (size_t j = 0; j < batch; j++)
        assert_ptr_equal(jobs[i]->queries[j], queries[i * batch + j]);
    job_queue_free_job(q, jobs[0]);
    for (size_t i = 0; i < batch; i++)
      assert_non_null(job_queue_take_query(q));
    assert_null(job_queue_take_query(q));
    assert_int_equal(job_queue_take_job(q)->n, 0);
    job_queue_close(&q);
    assert_null(q);
  }
}

static void a_query_given_back_keeps_its_memory_and_forgets_its_content(void **state)
{
  struct job_queue *q;
  struct span copy;

  (void)state;
  assert_ok(job_queue_open(1, 1, &q));
  struct pending_query *query = job_queue_take_query(q);
  assert_ok(region_copy(&query->region, span_of_str("hello"), &copy));
  const uint8_t *was = copy.p;
  job_queue_free_query(q, query);
  assert_ptr_equal(job_queue_take_query(q), query); /* the newest first: it is in the cache */
  assert_ok(region_copy(&query->region, span_of_str("hello"), &copy));
  assert_ptr_equal(copy.p, was);
  job_queue_close(&q);
}

static void jobs_leave_in_the_order_in_which_they_came(void **state)
{
  struct query_job *jobs[7];
  struct job_queue *q;

  (void)state;
  assert_ok(job_queue_open(2, 4, &q));
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < 7; i++)
      job_queue_push(q, jobs[i] = job_queue_take_job(q));
    assert_null(job_queue_take_job(q));
    for (size_t i = 0; i < 7; i++) {
      assert_ptr_equal(job_queue_pop(q), jobs[i]);
      job_queue_free_job(q, jobs[i]);
    }
  }
  job_queue_close(&q);
}

static void an_ended_queue_is_emptied_first(void **state)
{
  struct job_queue *q;

  (void)state;
  assert_ok(job_queue_open(1, 4, &q));
  struct query_job *a = job_queue_take_job(q), *b = job_queue_take_job(q);
  job_queue_push(q, a);
  job_queue_push(q, b);
  job_queue_end(q);
  job_queue_end(q);
  assert_ptr_equal(job_queue_pop(q), a);
  assert_ptr_equal(job_queue_pop(q), b);
  assert_null(job_queue_pop(q));
  assert_null(job_queue_pop(q));
  job_queue_close(&q);
}

static struct job_queue *shared;

static void *pop_one(void *context)
{
  (void)context;
  return job_queue_pop(shared);
}

static void wait_for_idle(bool want)
{
  int64_t end_ns = clock_now_ns() + 5 * CLOCK_NS_PER_S;

  while (job_queue_has_idle_worker(shared) != want && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(job_queue_has_idle_worker(shared), want);
}

static void a_worker_is_idle_while_no_pushed_job_will_keep_it_busy(void **state)
{
  pthread_t threads[2];
  void *popped[2];

  (void)state;
  assert_ok(job_queue_open(2, 1, &shared));
  struct query_job *a = job_queue_take_job(shared), *b = job_queue_take_job(shared);
  assert_false(job_queue_has_idle_worker(shared));
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, pop_one, NULL), 0);
  wait_for_idle(true);
  job_queue_push(shared, a);
  wait_for_idle(true); /* one of the two still waits */
  job_queue_push(shared, b);
  assert_false(job_queue_has_idle_worker(shared));
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], &popped[i]);
  assert_true((popped[0] == a && popped[1] == b) || (popped[0] == b && popped[1] == a));
  assert_false(job_queue_has_idle_worker(shared));
  job_queue_close(&shared);
}

static void the_end_wakes_every_worker(void **state)
{
  pthread_t threads[4];
  void *popped;

  (void)state;
  assert_ok(job_queue_open(4, 1, &shared));
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, pop_one, NULL), 0);
  wait_for_idle(true);
  job_queue_end(shared);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &popped);
    assert_null(popped);
  }
  job_queue_close(&shared);
}

/* ---- One producer and several workers: every query arrives once, and its memory is whole ---- */

enum { WORKERS = 3, BATCH = 5, TOTAL = 6000 };

static _Atomic uint8_t n_seen[TOTAL];
static _Atomic size_t n_torn;

static void *work(void *context)
{
  struct query_job *job;

  (void)context;
  while ((job = job_queue_pop(shared))) {
    for (size_t i = 0; i < job->n; i++) {
      const struct pending_query *query = job->queries[i];
      uint32_t number;
      memcpy(&number, query->key.p, sizeof number);
      atomic_fetch_add(&n_torn, number != query->ticket || number >= TOTAL || query->key.n != 4 + number % 50);
      atomic_fetch_add(&n_seen[number % TOTAL], 1);
    }
    job_queue_free_job(shared, job);
  }
  return NULL;
}

static struct pending_query *make_query(uint32_t number)
{
  struct pending_query *query;
  uint8_t bytes[64] = { 0 };

  while (!(query = job_queue_take_query(shared)))
    clock_sleep_ns(10 * CLOCK_NS_PER_US);
  memcpy(bytes, &number, sizeof number);
  query->ticket = number;
  assert_ok(region_copy(&query->region, span_of(bytes, 4 + number % 50), &query->key));
  return query;
}

static void every_query_reaches_one_worker_once(void **state)
{
  struct dice dice = { seed };
  pthread_t threads[WORKERS];
  struct query_job *job = NULL;
  struct pending_query *kept = NULL;

  (void)state;
  assert_ok(job_queue_open(WORKERS, BATCH, &shared));
  for (int i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
  for (uint32_t number = 0; number < TOTAL; number++) {
    while (!job && !(job = job_queue_take_job(shared)))
      clock_sleep_ns(10 * CLOCK_NS_PER_US);
    job->queries[job->n++] = make_query(number);
    if (job->n == BATCH || dice_below(&dice, 3) == 0) {
      job_queue_push(shared, job);
      job = NULL;
    }
    if (dice_below(&dice, 20) == 0 && (kept = job_queue_take_query(shared))) /* one that comes to nothing */
      job_queue_free_query(shared, kept);
  }
  if (job)
    job_queue_push(shared, job);
  job_queue_end(shared);
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(n_torn, 0);
  for (size_t i = 0; i < TOTAL; i++)
    assert_int_equal(n_seen[i], 1);
  size_t n_free = 0;
  while (job_queue_take_query(shared))
    n_free++;
  assert_int_equal(n_free, (3 * WORKERS + 1) * BATCH); /* all came back */
  job_queue_close(&shared);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(pools_end_at_their_bounds_and_hand_nothing_out_twice),
    cmocka_unit_test(a_query_given_back_keeps_its_memory_and_forgets_its_content),
    cmocka_unit_test(jobs_leave_in_the_order_in_which_they_came),
    cmocka_unit_test(an_ended_queue_is_emptied_first),
    cmocka_unit_test(a_worker_is_idle_while_no_pushed_job_will_keep_it_busy),
    cmocka_unit_test(the_end_wakes_every_worker),
    cmocka_unit_test(every_query_reaches_one_worker_once),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
