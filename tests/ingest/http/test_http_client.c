/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of HTTP requests: what is sent, how much of an answer is kept, and what is said when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/http/http_client.h"
#include "tests/support/assert_ok.h"
#include "tests/support/http_fixture.h"

enum { TIMEOUT_MS = 300, LONG_MS = 600000, BODY_BYTES = 100000 };

static struct http_fixture server;
static struct http_client *client;
static struct http_answer answer;

static void open_with(const struct http_options *options)
{
  http_client_close(&client);
  assert_ok(http_client_open(options, &client));
}

static int open_all(void **state)
{
  (void)state;
  http_fixture_init(&server);
  open_with(&(struct http_options){ .timeout_ms = LONG_MS, .body_bytes = BODY_BYTES });
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  http_client_close(&client);
  http_fixture_fini(&server);
  return 0;
}

static void get(void)
{
  http_client_ask(client, server.url, NULL, NULL, &answer);
}

static void a_request_has_the_header_and_the_login(void **state)
{
  (void)state;
  open_with(&(struct http_options){
      .timeout_ms = LONG_MS, .body_bytes = BODY_BYTES, .header = "accept: text/x", .user = "me", .password = "pass" });
  get();
  const char *request = http_fixture_request(&server);
  assert_non_null(strstr(request, "GET /v1/traces HTTP/1.1\r\n"));
  assert_non_null(strstr(request, "accept: text/x\r\n"));
  assert_non_null(strstr(request, "Authorization: Basic bWU6cGFzcw==\r\n")); /* base64 of me:pass */
}

static void a_get_after_a_post_has_no_body(void **state)
{
  const struct span body = span_of_str("some bytes");

  (void)state;
  http_client_ask(client, server.url, &body, NULL, &answer);
  assert_string_equal(http_fixture_body(http_fixture_request(&server)), "some bytes");
  get();
  assert_non_null(strstr(http_fixture_request(&server), "GET /"));
  assert_string_equal(http_fixture_body(http_fixture_request(&server)), "");
}

static void a_long_answer_is_kept_to_its_last_byte_and_a_longer_one_is_cut(void **state)
{
  (void)state;
  for (size_t n = BODY_BYTES - 1; n <= BODY_BYTES + 1; n++) {
    AUTO(mem_free) char *text = NULL;
    assert_ok(mem_array(n + 1, 1, &text));
    memset(text, 'a', n);
    text[n - 1] = 'z';
    server.answer = text;
    get();
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.is_cut, n > BODY_BYTES);
    assert_int_equal(answer.n_body, n > BODY_BYTES ? BODY_BYTES : n);
    assert_memory_equal(answer.body, text, answer.n_body);
    assert_int_equal(answer.body[answer.n_body], '\0');
  }
}

static void an_answer_without_a_body_is_empty_though_the_last_one_was_not(void **state)
{
  (void)state;
  server.answer = "long";
  get();
  server.answer = "";
  get();
  assert_int_equal(answer.n_body, 0);
  assert_string_equal(answer.body, "");
}

static void redirections_are_not_followed(void **state)
{
  (void)state;
  server.status = 302;
  get();
  assert_int_equal(answer.status, 302);
  assert_int_equal(server.n_requests, 1);
}

static void no_connection_is_told_apart_from_no_answer(void **state)
{
  (void)state;
  server.mode = HTTP_FIXTURE_CLOSES;
  get();
  assert_int_equal(answer.status, 0);
  assert_false(answer.is_refused);
  assert_string_not_equal(answer.trouble, "");
  http_client_ask(client, "http://127.0.0.1:1/", NULL, NULL, &answer);
  assert_int_equal(answer.status, 0);
  assert_true(answer.is_refused);
  assert_string_not_equal(answer.trouble, "");
  assert_string_equal(answer.body, "");
}

static void an_answer_that_does_not_come_ends_with_the_timeout_or_as_the_caller_says(void **state)
{
  const _Atomic int64_t now_ns = clock_now_ns();

  (void)state;
  server.mode = HTTP_FIXTURE_HANGS;
  http_client_ask(client, server.url, NULL, &now_ns, &answer);
  assert_int_equal(answer.status, 0);
  open_with(&(struct http_options){ .timeout_ms = TIMEOUT_MS });
  get();
  assert_int_equal(answer.status, 0);
  assert_false(answer.is_refused);
}

static void only_http_is_spoken(void **state)
{
  (void)state;
  http_client_ask(client, "file:///etc/hostname", NULL, NULL, &answer);
  assert_int_equal(answer.status, 0);
  assert_string_equal(answer.body, "");
  assert_string_not_equal(answer.trouble, "");
}

static void a_step_of_a_path_is_escaped(void **state)
{
  char out[HTTP_ESCAPED_MAX * 16 + 1];

  (void)state;
  http_client_escape("a/b c~\xc3\xa9%", out);
  assert_string_equal(out, "a%2Fb%20c~%C3%A9%25");
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, open_all, close_all)

int main(void)
{
  const struct CMUnitTest tests[] = {
    test_of(a_request_has_the_header_and_the_login),
    test_of(a_get_after_a_post_has_no_body),
    test_of(a_long_answer_is_kept_to_its_last_byte_and_a_longer_one_is_cut),
    test_of(an_answer_without_a_body_is_empty_though_the_last_one_was_not),
    test_of(redirections_are_not_followed),
    test_of(no_connection_is_told_apart_from_no_answer),
    test_of(an_answer_that_does_not_come_ends_with_the_timeout_or_as_the_caller_says),
    test_of(only_http_is_spoken),
    cmocka_unit_test(a_step_of_a_path_is_escaped),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
