/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the pool and the queue of traces: its bound, its order, and what wakes the exporter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/tracing/trace_queue.h"
#include "tests/support/assert_ok.h"

enum { N = 5, LONG_MS = 600000 };

static struct trace_queue *queue;

static int open_queue(void **state)
{
  (void)state;
  assert_ok(trace_queue_open(N, &queue));
  return 0;
}

static int close_queue(void **state)
{
  (void)state;
  trace_queue_close(&queue);
  assert_null(queue);
  return 0;
}

static struct query_trace *take(void)
{
  struct query_trace *trace = trace_queue_take(queue);

  assert_non_null(trace);
  assert_null(trace->next);
  assert_int_equal(trace->offset, 0);
  return trace;
}

static void there_are_so_many_records_and_no_more(void **state)
{
  struct query_trace *traces[N];

  (void)state;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N; i++) {
      traces[i] = take();
      traces[i]->offset = i + 1;
    }
    assert_null(trace_queue_take(queue));
    trace_queue_put(queue, traces[0]);
    traces[0] = take();
    assert_null(trace_queue_take(queue));
    for (int i = 0; i < N; i++)
      trace_queue_push(queue, traces[i]);
    trace_queue_put(queue, trace_queue_pop(queue, N));
  }
}

static void the_oldest_come_first(void **state)
{
  struct query_trace *list;

  (void)state;
  for (int i = 0; i < N; i++) {
    struct query_trace *trace = take();
    trace->offset = i + 1;
    trace_queue_push(queue, trace);
  }
  list = trace_queue_pop(queue, 2);
  assert_int_equal(list->offset, 1);
  assert_int_equal(list->next->offset, 2);
  assert_null(list->next->next);
  trace_queue_put(queue, list);
  list = trace_queue_pop(queue, N);
  assert_int_equal(list->offset, 3);
  assert_int_equal(list->next->next->offset, 5);
  trace_queue_put(queue, list);
  assert_null(trace_queue_pop(queue, N));
}

static void a_wait_ends_with_enough_records_or_with_the_queue(void **state)
{
  (void)state;
  trace_queue_wait(queue, 1, 1); /* there is nothing */
  trace_queue_push(queue, take());
  trace_queue_push(queue, take());
  trace_queue_wait(queue, 2, LONG_MS);
  trace_queue_end(queue);
  trace_queue_wait(queue, 3, LONG_MS);
  assert_non_null(trace_queue_pop(queue, N));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(there_are_so_many_records_and_no_more, open_queue, close_queue),
    cmocka_unit_test_setup_teardown(the_oldest_come_first, open_queue, close_queue),
    cmocka_unit_test_setup_teardown(a_wait_ends_with_enough_records_or_with_the_queue, open_queue, close_queue),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
