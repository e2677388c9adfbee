/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of requests to a collector: what it answers, and what becomes of a request that it does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/tracing/collector.h"
#include "tests/support/assert_ok.h"
#include "tests/support/http_fixture.h"

enum { TIMEOUT_MS = 300, LONG_MS = 600000 };

static struct http_fixture server;
static struct collector *collector;
static struct collector_answer answer;
static _Atomic int64_t give_up_ns;

static void open_with(const char *url, int64_t timeout_ms)
{
  collector_close(&collector);
  assert_ok(collector_open(url, timeout_ms, &collector));
}

static int open_all(void **state)
{
  (void)state;
  http_fixture_init(&server);
  atomic_store(&give_up_ns, INT64_MAX);
  open_with(server.url, LONG_MS);
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  collector_close(&collector);
  http_fixture_fini(&server);
  return 0;
}

static void post(void)
{
  collector_post(collector, span_of_str("{\"spans\":1}"), &give_up_ns, &answer);
}

static void a_request_is_json_to_the_path_of_the_url(void **state)
{
  (void)state;
  post();
  assert_int_equal(answer.verdict, COLLECTOR_TOOK);
  assert_int_equal(answer.n_rejected, 0);
  assert_non_null(strstr(http_fixture_request(&server), "POST /v1/traces HTTP/1.1\r\n"));
  assert_non_null(strstr(http_fixture_request(&server), "content-type: application/json\r\n"));
  assert_string_equal(http_fixture_body(http_fixture_request(&server)), "{\"spans\":1}");
  post();
  assert_int_equal(answer.verdict, COLLECTOR_TOOK);
  assert_int_equal(server.n_requests, 2);
}

static void a_status_says_whether_another_try_may_succeed(void **state)
{
  static const int passing[] = { 429, 502, 503, 504 }, lasting[] = { 301, 400, 401, 404, 413, 500 };

  (void)state;
  server.answer = "{\"message\":\"no\"}";
  for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
    atomic_store(&server.status, passing[i]);
    post();
    assert_int_equal(answer.verdict, COLLECTOR_AWAY);
  }
  for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
    atomic_store(&server.status, lasting[i]);
    post();
    assert_int_equal(answer.verdict, COLLECTOR_REFUSED);
  }
  assert_string_equal(answer.reason, "HTTP status 500: {\"message\":\"no\"}");
}

static void rejected_spans_are_counted(void **state)
{
  (void)state;
  server.answer = "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}";
  post();
  assert_int_equal(answer.verdict, COLLECTOR_TOOK);
  assert_int_equal(answer.n_rejected, 3);
  assert_non_null(strstr(answer.reason, "too old"));
  server.answer = "{\"partialSuccess\":{\"rejectedSpans\":2}}"; /* as some libraries write it */
  post();
  assert_int_equal(answer.n_rejected, 2);
}

static void answers_that_are_no_json_reject_nothing(void **state)
{
  static const char *const answers[] = { "", "ok", "[]", "{\"partialSuccess\":7}", "{\"partialSuccess\":{}}", "\xff" };

  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    server.answer = answers[i];
    post();
    assert_int_equal(answer.verdict, COLLECTOR_TOOK);
    assert_int_equal(answer.n_rejected, 0);
  }
}

static void of_a_long_answer_the_beginning_is_kept(void **state)
{
  static char text[100001];

  (void)state;
  memset(text, 'x', sizeof text - 1);
  server.answer = text;
  atomic_store(&server.status, 400);
  post();
  assert_int_equal(answer.verdict, COLLECTOR_REFUSED);
  assert_non_null(strstr(answer.reason, "HTTP status 400: xxx"));
}

static void a_collector_that_closes_or_is_not_there_is_away(void **state)
{
  (void)state;
  atomic_store(&server.mode, HTTP_FIXTURE_CLOSES);
  post();
  assert_int_equal(answer.verdict, COLLECTOR_AWAY);
  assert_true(*answer.reason);
  open_with("http://127.0.0.1:1/v1/traces", LONG_MS);
  post();
  assert_int_equal(answer.verdict, COLLECTOR_AWAY);
  assert_non_null(strstr(answer.reason, "127.0.0.1"));
}

static void a_collector_that_hangs_is_away_after_the_timeout(void **state)
{
  (void)state;
  atomic_store(&server.mode, HTTP_FIXTURE_HANGS);
  open_with(server.url, TIMEOUT_MS);
  post();
  assert_int_equal(answer.verdict, COLLECTOR_AWAY);
  assert_true(*answer.reason);
}

static void a_request_can_be_given_up(void **state)
{
  (void)state;
  atomic_store(&server.mode, HTTP_FIXTURE_HANGS);
  atomic_store(&give_up_ns, clock_now_ns() + TIMEOUT_MS * CLOCK_NS_PER_MS);
  post();
  assert_int_equal(answer.verdict, COLLECTOR_AWAY);
  atomic_store(&server.mode, HTTP_FIXTURE_ANSWERS);
  atomic_store(&give_up_ns, INT64_MAX);
  post(); /* on another connection */
  assert_int_equal(answer.verdict, COLLECTOR_TOOK);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_request_is_json_to_the_path_of_the_url, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_status_says_whether_another_try_may_succeed, open_all, close_all),
    cmocka_unit_test_setup_teardown(rejected_spans_are_counted, open_all, close_all),
    cmocka_unit_test_setup_teardown(answers_that_are_no_json_reject_nothing, open_all, close_all),
    cmocka_unit_test_setup_teardown(of_a_long_answer_the_beginning_is_kept, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_collector_that_closes_or_is_not_there_is_away, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_collector_that_hangs_is_away_after_the_timeout, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_request_can_be_given_up, open_all, close_all),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
