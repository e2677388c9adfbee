/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the exporter: which queries are traced, what it sends, what it drops and counts, and how it stops. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/tracing/tracing.h"
#include "tests/support/assert_ok.h"
#include "tests/support/http_fixture.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"

#define SAMPLED "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

enum { SPANS_OF_ONE = 2, TRACED_MAX = 100000 };

static struct http_fixture server;
static struct counters counters;
static struct tracing *tracing;

static void open_with(const char *url)
{
  const struct tracing_config config = { .endpoint = url, .source.topic = "queries", .counters = &counters };

  assert_ok(tracing_open(&config, &tracing));
}

static int open_all(void **state)
{
  (void)state;
  counters = (struct counters){ 0 };
  http_fixture_init(&server);
  open_with(server.url);
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  tracing_close(&tracing);
  http_fixture_fini(&server);
  return 0;
}

static struct query_trace *begin(const char *traceparent)
{
  const struct trace_headers headers = { { span_of_str(traceparent) } };

  return tracing_begin(tracing, &headers, clock_now_ns());
}

/* Trace a query that gets a reply. */
static void trace_one(void)
{
  struct query_trace *trace = begin(SAMPLED);

  assert_non_null(trace);
  query_trace_note_sent(trace, "answers");
  tracing_end(tracing, trace, true);
}

static void wait_for(const _Atomic uint64_t *counter, uint64_t n)
{
  int64_t end_ns = clock_now_ns() + 30 * CLOCK_NS_PER_S;

  while (counters_get(counter) < n && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(counters_get(counter), n);
}

static void only_what_is_sampled_is_traced(void **state)
{
  static const struct trace_headers none;

  (void)state;
  assert_null(begin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"));
  assert_null(begin("no traceparent"));
  assert_null(tracing_begin(tracing, &none, 0));
  assert_null(tracing_begin(NULL, &none, 0));
  trace_one();
  wait_for(&counters.spans, SPANS_OF_ONE);
  assert_non_null(strstr(http_fixture_request(&server), "\"name\":\"process queries\""));
}

static void a_query_that_is_not_traced_is_ignored(void **state)
{
  (void)state;
  query_trace_note_answer(NULL, NULL, NULL);
  query_trace_note_error(NULL, "INTERNAL", "");
  query_trace_note_sent(NULL, "answers");
  tracing_end(tracing, NULL, true);
  tracing_drop(tracing, NULL);
}

static void without_a_free_record_a_query_is_not_traced(void **state)
{
  struct query_trace *trace, *list = NULL;

  (void)state;
  for (int i = 0; i < TRACED_MAX && (trace = begin(SAMPLED)); i++) {
    trace->next = list;
    list = trace;
  }
  assert_int_equal(counters_get(&counters.spans_dropped[SPAN_DROP_FULL]), 1);
  log_watch_wait("too many queries are traced");
  tracing_drop(tracing, list);
  trace_one();
  wait_for(&counters.spans, SPANS_OF_ONE);
}

static void what_the_collector_refuses_is_dropped_at_once(void **state)
{
  (void)state;
  atomic_store(&server.status, 500);
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_REFUSED], SPANS_OF_ONE);
  assert_int_equal(server.n_requests, 1);
  log_watch_wait("HTTP status 500");
  atomic_store(&server.status, 200);
  trace_one();
  wait_for(&counters.spans, SPANS_OF_ONE);
}

static void single_rejected_spans_are_counted(void **state)
{
  (void)state;
  server.answer = "{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}";
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_REFUSED], 1);
  assert_int_equal(counters_get(&counters.spans), SPANS_OF_ONE - 1);
  server.answer = "{\"partialSuccess\":{\"rejectedSpans\":\"999\"}}"; /* more than were sent */
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_REFUSED], 1 + SPANS_OF_ONE);
}

static void a_busy_collector_is_asked_again(void **state)
{
  (void)state;
  server.n_busy = 2;
  trace_one();
  wait_for(&counters.spans, SPANS_OF_ONE);
  assert_int_equal(server.n_requests, 3);
  assert_int_equal(counters_sum(counters.spans_dropped, COUNTERS_SPAN_DROPS), 0);
}

static void a_collector_that_is_away_is_logged_once(void **state)
{
  size_t n_before = log_watch_count("spans_dropped");

  (void)state;
  atomic_store(&server.mode, HTTP_FIXTURE_CLOSES);
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_AWAY], SPANS_OF_ONE);
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_AWAY], 2 * SPANS_OF_ONE);
  assert_int_equal(log_watch_count("spans_dropped"), n_before + 1);
}

/* Let the exporter wait for the collector, so that what is traced now waits, too. */
static void hold_exporter(void)
{
  int n_before = server.n_requests;
  int64_t end_ns = clock_now_ns() + 30 * CLOCK_NS_PER_S;

  atomic_store(&server.mode, HTTP_FIXTURE_HANGS);
  trace_one();
  while (server.n_requests == n_before && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(server.n_requests, n_before + 1);
}

static void trace_until_taken(void)
{
  int64_t end_ns = clock_now_ns() + 30 * CLOCK_NS_PER_S;

  while (counters_get(&counters.spans) == 0 && clock_now_ns() < end_ns) {
    trace_one();
    clock_sleep_ns(100 * CLOCK_NS_PER_MS);
  }
  assert_true(counters_get(&counters.spans) > 0);
}

/* Each request to a collector that hangs takes seconds. */
static void while_the_collector_is_away_all_that_waits_is_dropped_after_one_try(void **state)
{
  enum { N = 300 }; /* more than one request */
  int n_requests;

  (void)state;
  server.n_busy = INT_MAX;
  hold_exporter();
  for (int i = 0; i < N; i++)
    trace_one();
  atomic_store(&server.mode, HTTP_FIXTURE_ANSWERS);
  wait_for(&counters.spans_dropped[SPAN_DROP_AWAY], (N + 1) * SPANS_OF_ONE);
  n_requests = server.n_requests;
  assert_int_equal(n_requests, 3);
  trace_one();
  wait_for(&counters.spans_dropped[SPAN_DROP_AWAY], (N + 2) * SPANS_OF_ONE);
  assert_in_range(server.n_requests, n_requests, n_requests + 1); /* it may have been dropped with the others */
  server.n_busy = 0;
  trace_until_taken();
}

static void a_slow_collector_is_logged_once(void **state)
{
  size_t n_before = log_watch_count("the collector is slow");
  uint64_t n = 1;

  (void)state;
  hold_exporter();
  for (struct query_trace *trace; n < TRACED_MAX && (trace = begin(SAMPLED)); n++)
    tracing_end(tracing, trace, false);
  assert_int_equal(counters_get(&counters.spans_dropped[SPAN_DROP_FULL]), 1);
  atomic_store(&server.mode, HTTP_FIXTURE_ANSWERS);
  wait_for(&counters.spans, n - 1 + SPANS_OF_ONE); /* the first has a span of its reply, too */
  assert_int_equal(log_watch_count("the collector is slow"), n_before + 1);
}

static void a_close_sends_what_is_left(void **state)
{
  enum { N = 300 }; /* more than one request */

  (void)state;
  for (int i = 0; i < N; i++)
    trace_one();
  tracing_close(&tracing);
  assert_int_equal(counters_get(&counters.spans), N * SPANS_OF_ONE);
}

/* The reason tells that the request was given up: libcurl's own timeout, five seconds, has other words. */
static void a_close_does_not_wait_for_a_collector_that_hangs(void **state)
{
  size_t n_before = log_watch_count("Timeout was reached");

  (void)state;
  atomic_store(&server.mode, HTTP_FIXTURE_HANGS);
  trace_one();
  tracing_close(&tracing);
  assert_int_equal(counters_get(&counters.spans_dropped[SPAN_DROP_AWAY]), SPANS_OF_ONE);
  assert_int_equal(server.n_requests, 1);
  assert_int_equal(log_watch_count("Timeout was reached"), n_before + 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(only_what_is_sampled_is_traced, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_query_that_is_not_traced_is_ignored, open_all, close_all),
    cmocka_unit_test_setup_teardown(without_a_free_record_a_query_is_not_traced, open_all, close_all),
    cmocka_unit_test_setup_teardown(what_the_collector_refuses_is_dropped_at_once, open_all, close_all),
    cmocka_unit_test_setup_teardown(single_rejected_spans_are_counted, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_busy_collector_is_asked_again, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_collector_that_is_away_is_logged_once, open_all, close_all),
    cmocka_unit_test_setup_teardown(while_the_collector_is_away_all_that_waits_is_dropped_after_one_try, open_all,
                                    close_all),
    cmocka_unit_test_setup_teardown(a_slow_collector_is_logged_once, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_close_sends_what_is_left, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_close_does_not_wait_for_a_collector_that_hangs, open_all, close_all),
  };

  return SIDE_BY_SIDE(tests, NULL, NULL);
}
