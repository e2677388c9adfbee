/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of spans: the request of OTLP that is made from what was noted of queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/tracing/query_spans.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define CALLER "b7ad6b7169203331"

enum { AHEAD_NS = 1000000, SPANS_MAX = 5 };

static const struct query_spans_source source = { "queries", "sluice", "host/127.0.0.1:8321" };

static struct query_trace trace_of_a_search(void)
{
  return (struct query_trace){
    .parent = { TRACE, CALLER, true },
    .unix_ahead_ns = AHEAD_NS,
    .partition = 3,
    .offset = INT64_C(1) << 53,
    .received_ns = 1000,
    .waited_ns = 3000,
    .queued_ns = 4000,
    .searched_ns = 5000,
    .searched_us = 2,
    .sent_ns = 9000,
    .ended_ns = 12000,
    .is_delivered = true,
    .reply_topic = "answers",
    .space = "books",
    .k = 10,
    .method = "exact",
    .generation = 2,
    .epoch = 77,
    .n_hits = 9,
    .is_exact = true,
  };
}

static json_t *request;
static json_t *spans[SPANS_MAX];
static size_t n_spans;

/* Encode, and check what surrounds the spans. */
static void encode(const struct query_trace *list)
{
  char *text = query_spans_encode(list, &source, &n_spans);

  assert_non_null(text);
  json_decref(request);
  request = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  const json_t *resource = json_array_get(json_object_get(request, "resourceSpans"), 0);
  const json_t *scoped = json_array_get(json_object_get(resource, "scopeSpans"), 0);
  const json_t *all = json_object_get(scoped, "spans");
  assert_int_equal(json_array_size(all), n_spans);
  for (size_t i = 0; i < n_spans && i < SPANS_MAX; i++)
    spans[i] = json_array_get(all, i);
  assert_string_equal(json_string_value(json_object_get(json_object_get(scoped, "scope"), "name")), "sluice");
  assert_int_equal(json_array_size(json_object_get(json_object_get(resource, "resource"), "attributes")), 3);
}

static const char *text_of(const json_t *span, const char *field)
{
  const char *text = json_string_value(json_object_get(span, field));

  return text ? text : "none";
}

static void check_span(const json_t *span, const char *name, int kind, const char *begin, const char *end)
{
  assert_string_equal(text_of(span, "name"), name);
  assert_string_equal(text_of(span, "traceId"), TRACE);
  assert_int_equal(strlen(text_of(span, "spanId")), SPAN_ID_DIGITS);
  assert_int_equal(json_integer_value(json_object_get(span, "kind")), kind);
  assert_string_equal(text_of(span, "startTimeUnixNano"), begin);
  assert_string_equal(text_of(span, "endTimeUnixNano"), end);
}

/* Check that a span has the attributes of a JSON text, in this order. */
static void check_attributes(const json_t *span, const char *expected)
{
  json_t *wanted = json_loads(expected, 0, NULL);
  const json_t *attributes = json_object_get(span, "attributes");

  assert_non_null(wanted);
  if (!json_equal(attributes, wanted))
    fail_msg("%s", json_dumps(attributes, 0));
  json_decref(wanted);
}

#define TEXT(key, value)  "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define COUNT(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define TRUTH(key)        "{\"key\":\"" key "\",\"value\":{\"boolValue\":true}}"

/* clang-format off */
#define RECORD                                            \
  TEXT("messaging.system", "kafka") ","                   \
  TEXT("messaging.operation.type", "process") ","         \
  TEXT("messaging.operation.name", "process") ","         \
  TEXT("messaging.destination.name", "queries") ","       \
  TEXT("messaging.destination.partition.id", "3") ","     \
  TEXT("messaging.consumer.group.name", "sluice") ","     \
  COUNT("messaging.kafka.offset", "9007199254740992") "," \
  TEXT("sluice.space", "books") ","                       \
  COUNT("sluice.k", "10")
#define ANSWER                                            \
  TEXT("sluice.method", "exact") ","                      \
  COUNT("sluice.generation", "2") ","                     \
  COUNT("sluice.epoch", "77") ","                         \
  COUNT("sluice.hits", "9") ","                           \
  TRUTH("sluice.exact")
#define REPLY                                             \
  TEXT("messaging.system", "kafka") ","                   \
  TEXT("messaging.operation.type", "send") ","            \
  TEXT("messaging.operation.name", "send") ","            \
  TEXT("messaging.destination.name", "answers")
/* clang-format on */

static void a_search_has_a_span_for_each_phase_below_its_own(void **state)
{
  struct query_trace trace = trace_of_a_search();

  (void)state;
  encode(&trace);
  assert_int_equal(n_spans, 5);
  check_span(spans[0], "process queries", 5, "1001000", "1012000");
  check_span(spans[1], "wait", 1, "1001000", "1003000");
  check_span(spans[2], "queue", 1, "1004000", "1005000");
  check_span(spans[3], "search", 1, "1005000", "1007000");
  check_span(spans[4], "send answers", 4, "1009000", "1012000");
  assert_string_equal(text_of(spans[0], "parentSpanId"), CALLER);
  for (size_t i = 1; i < n_spans; i++) {
    assert_string_equal(text_of(spans[i], "parentSpanId"), text_of(spans[0], "spanId"));
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(text_of(spans[i], "spanId"), text_of(spans[j], "spanId"));
  }
  assert_null(json_object_get(spans[0], "status"));
  check_attributes(spans[0], "[" RECORD "," ANSWER "]");
  check_attributes(spans[4], "[" REPLY "]");
}

static void a_refused_query_has_an_error_and_no_search(void **state)
{
  struct query_trace trace = trace_of_a_search();

  (void)state;
  trace.waited_ns = trace.searched_ns = 0;
  trace.searched_us = 0;
  trace.method[0] = '\0';
  query_trace_note_error(&trace, "DEADLINE_PASSED", "too late");
  encode(&trace);
  assert_int_equal(n_spans, 3);
  check_span(spans[1], "queue", 1, "1004000", "1009000"); /* to the reply */
  check_span(spans[2], "send answers", 4, "1009000", "1012000");
  const json_t *status = json_object_get(spans[0], "status");
  assert_int_equal(json_integer_value(json_object_get(status, "code")), 2);
  assert_string_equal(text_of(status, "message"), "too late");
  check_attributes(spans[0], "[" RECORD "," TEXT("error.type", "DEADLINE_PASSED") "]");
}

static void a_failed_search_lasts_until_the_reply(void **state)
{
  struct query_trace trace = trace_of_a_search();

  (void)state;
  trace.searched_us = 0;
  encode(&trace);
  check_span(spans[3], "search", 1, "1005000", "1009000");
}

static void an_undelivered_reply_is_an_error_of_its_span(void **state)
{
  struct query_trace trace = trace_of_a_search();

  (void)state;
  trace.is_delivered = false;
  encode(&trace);
  assert_non_null(json_object_get(spans[4], "status"));
}

static void a_dead_letter_has_one_span(void **state)
{
  struct query_trace trace = { .parent = { TRACE, CALLER, true }, .received_ns = 1, .ended_ns = 2 };

  (void)state;
  query_trace_note_error(&trace, "DEAD_LETTER", "no query");
  encode(&trace);
  assert_int_equal(n_spans, 1);
}

static void a_list_of_traces_is_one_request(void **state)
{
  struct query_trace first = trace_of_a_search(), second = trace_of_a_search();

  (void)state;
  first.next = &second;
  encode(&first);
  assert_int_equal(n_spans, 10);
}

static void texts_that_json_cannot_have_are_cut(void **state)
{
  struct query_trace trace = trace_of_a_search();
  char message[QUERY_TRACE_MESSAGE_MAX + 3];
  const struct query query = { .space = span_of_str("b\xff") };
  const struct answer answer = { .error = ANSWER_BAD_QUERY, .error_message = message };

  (void)state;
  memset(message, 'x', sizeof message);
  memcpy(message + QUERY_TRACE_MESSAGE_MAX - 1, "\xc3\xa9", 3); /* a letter across the end */
  query_trace_note_answer(&trace, &query, &answer);
  encode(&trace);
  assert_string_equal(trace.space, "b");
  assert_int_equal(strlen(trace.error_message), QUERY_TRACE_MESSAGE_MAX - 1);
  assert_string_equal(text_of(json_object_get(spans[0], "status"), "message"), trace.error_message);
}

static int free_request(void **state)
{
  (void)state;
  json_decref(request);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_search_has_a_span_for_each_phase_below_its_own),
    cmocka_unit_test(a_refused_query_has_an_error_and_no_search),
    cmocka_unit_test(a_failed_search_lasts_until_the_reply),
    cmocka_unit_test(an_undelivered_reply_is_an_error_of_its_span),
    cmocka_unit_test(a_dead_letter_has_one_span),
    cmocka_unit_test(a_list_of_traces_is_one_request),
    cmocka_unit_test(texts_that_json_cannot_have_are_cut),
  };

  return cmocka_run_group_tests(tests, NULL, free_request);
}
