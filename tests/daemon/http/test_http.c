/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP endpoint over real sockets: its answers, the check of hosts, and slow clients that must not block others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/http/http.h"
#include "daemon/http/http_hosts.h"

enum { ANSWER_BYTES = 4096, SLOW_CLIENTS = 500, PROBES = 40, WAIT_MS = 20000 };

static struct readiness readiness;
static struct status status = { .readiness = &readiness }; /* zeros suffice for the pages that need no engine */
static struct http *http;
static int port;

static struct sockaddr_in loopback(int at_port)
{
  return (struct sockaddr_in){
    .sin_family = AF_INET, .sin_port = htons((uint16_t)at_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
  };
}

static int free_port(void)
{
  struct sockaddr_in address = loopback(0);
  socklen_t n = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
  close(fd);
  return ntohs(address.sin_port);
}

static int connect_client(void)
{
  struct sockaddr_in address = loopback(port);
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* Read until the server closes, or sends nothing for 200 ms after the first bytes. */
static void read_answer(int fd, char answer[ANSWER_BYTES])
{
  size_t n = 0;
  struct pollfd p = { .fd = fd, .events = POLLIN };

  while (poll(&p, 1, n ? 200 : WAIT_MS) > 0 && n < ANSWER_BYTES - 1) {
    ssize_t more = read(fd, answer + n, ANSWER_BYTES - 1 - n);
    if (more <= 0)
      break;
    n += (size_t)more;
  }
  answer[n] = '\0';
}

static void ask(const char *request, char answer[ANSWER_BYTES])
{
  int fd = connect_client();

  assert_int_equal(write(fd, request, strlen(request)), strlen(request));
  read_answer(fd, answer);
  close(fd);
}

static int open_http(void **state)
{
  static const struct config_list no_hosts;
  char listen[32];

  (void)state;
  port = free_port();
  snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
  return http_open(listen, &no_hosts, &status, &http) != ERR_OK;
}

static int close_http(void **state)
{
  (void)state;
  http_close(&http);
  return 0;
}

static void readiness_has_a_reason(void **state)
{
  char answer[ANSWER_BYTES];

  (void)state;
  readiness_set_silently(&readiness, "waiting for the query partitions");
  ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 503 ", 13);
  assert_non_null(strstr(answer, "\r\n\r\nnot ready: waiting for the query partitions\n"));
  readiness_set_silently(&readiness, NULL);
  ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
  assert_non_null(strstr(answer, "\r\n\r\nready\n"));
}

static void clients_neither_cache_nor_guess_the_type(void **state)
{
  char answer[ANSWER_BYTES];

  (void)state;
  ask("GET /healthz HTTP/1.0\r\n\r\n", answer);
  assert_memory_equal(answer + 8, " 200 ", 5);
  assert_non_null(strcasestr(answer, "\r\nCache-Control: no-store\r\n"));
  assert_non_null(strcasestr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
}

static void head_has_the_headers_without_the_body(void **state)
{
  char answer[ANSWER_BYTES];

  (void)state;
  ask("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
  assert_non_null(strcasestr(answer, "\r\nContent-Length: 3\r\n"));
  assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

static void other_methods_get_405_with_the_allowed_ones(void **state)
{
  static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "get" };
  char request[128], answer[ANSWER_BYTES];

  (void)state;
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    snprintf(request, sizeof request, "%s /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
             methods[i]);
    ask(request, answer);
    assert_memory_equal(answer, "HTTP/1.1 405 ", 13);
    assert_non_null(strcasestr(answer, "\r\nAllow: GET, HEAD\r\n"));
  }
}

static void an_unknown_host_gets_421(void **state)
{
  char answer[ANSWER_BYTES];

  (void)state;
  ask("GET /status HTTP/1.1\r\nHost: rebound.example:8321\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 421 ", 13);
}

static void hosts_are_matched_by_address_name_and_list(void **state)
{
  char *names[] = { "sluice.example.org", "other:99" }, *addresses[] = { "192.0.2.1", "[2001:db8::1]" };
  const struct config_list none = { 0 }, two = { names, 2 }, numeric = { addresses, 2 };
  const struct {
    const char *listen;
    const struct config_list *names;
    const char *host;
    bool is_served;
  } rows[] = {
    { "127.0.0.1:8321", &none, NULL, true },
    { "127.0.0.1:8321", &none, "127.0.0.1:8321", true },
    { "127.0.0.1:8321", &none, "127.0.0.1", true },
    { "127.0.0.1:8321", &none, "127.9.9.9:1", true },
    { "127.0.0.1:8321", &none, "[::1]:8321", true },
    { "127.0.0.1:8321", &none, "LocalHost:8321", true },
    { "127.0.0.1:8321", &none, "localhost.", true },
    { "[::1]:8321", &none, "[::1]", true },
    { "127.0.0.1:8321", &none, "evil.example", false },
    { "127.0.0.1:8321", &none, "localhost.evil.example:8321", false },
    { "127.0.0.1:8321", &none, "127.0.0.1.evil.example", false },
    { "127.0.0.1:8321", &none, "192.0.2.1:8321", false },
    { "127.0.0.1:8321", &none, "[2001:db8::1]:8321", false },
    { "127.0.0.1:8321", &none, "", false },
    { "127.0.0.1:8321", &none, ":8321", false },
    { "127.0.0.1:8321", &none, "[", false },
    { "127.0.0.1:8321", &two, "sluice.example.org:443", true },
    { "127.0.0.1:8321", &two, "OTHER", true },
    { "127.0.0.1:8321", &two, "third", false },
    { "127.0.0.1:8321", &numeric, "192.0.2.1:8321", true },
    { "127.0.0.1:8321", &numeric, "[2001:db8::1]:8321", true },
    { "127.0.0.1:8321", &numeric, "192.0.2.2:8321", false },
    { "0.0.0.0:8321", &none, "any.example", true },
    { "0.0.0.0:8321", &two, "any.example", false },
    { "0.0.0.0:8321", &two, "sluice.example.org", true },
    { "0.0.0.0:8321", &two, "192.0.2.1:8321", true },
    { "0.0.0.0:8321", &two, "localhost", true },
    { "[2001:db8::1]:8321", &two, "[2001:db8::1]:8321", true },
  };
  char longest[600];
  struct http_hosts h;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    http_hosts_init(rows[i].listen, rows[i].names, &h);
    if (http_hosts_serve(&h, rows[i].host) != rows[i].is_served)
      fail_msg("listening at %s, host %s", rows[i].listen, rows[i].host ? rows[i].host : "(none)");
  }
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_false(http_hosts_serve(&h, longest));
}

static void data_is_shown_only_under_a_known_host(void **state)
{
  static const char *const known[] = { "127.0.0.1", "192.0.2.1:1", "[2001:db8::1]", "localhost:1", "Own.example:443" };
  char *names[] = { "own.example" };
  const struct config_list none = { 0 }, one = { names, 1 };
  struct config config = { .http.data = CONFIG_DATA_LOCAL };
  struct http_hosts h;
  struct http *open;
  char answer[ANSWER_BYTES], listen[32];
  int loopback_port = port;

  (void)state;
  http_hosts_init("0.0.0.0:1", &one, &h);
  assert_true(http_hosts_know(&h, NULL));
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    assert_true(http_hosts_know(&h, known[i]));
  assert_false(http_hosts_know(&h, "rebound.example"));
  status.config = &config;
  port = free_port();
  snprintf(listen, sizeof listen, "0.0.0.0:%d", port);
  assert_int_equal(http_open(listen, &none, &status, &open), ERR_OK);
  ask("GET /items/ HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 403 ", 13);
  ask("GET /items/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 400 ", 13); /* it is without a key */
  config.http.data = CONFIG_DATA_ALL;
  ask("GET /items/ HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n", answer);
  assert_memory_equal(answer, "HTTP/1.1 400 ", 13);
  http_close(&open);
  status.config = NULL;
  port = loopback_port;
}

static void slow_clients_do_not_lock_out_a_probe(void **state)
{
  static const char begun[] = "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
  static int slow[SLOW_CLIENTS];
  char answer[ANSWER_BYTES];

  (void)state;
  for (int i = 0; i < SLOW_CLIENTS; i++) {
    slow[i] = connect_client();
    assert_int_equal(write(slow[i], begun, sizeof begun - 1), sizeof begun - 1);
  }
  for (int i = 0; i < PROBES; i++) {
    ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer);
    assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
    for (int j = 0; j < SLOW_CLIENTS; j++) {
      if (send(slow[j], "x", 1, MSG_NOSIGNAL) == 1)
        continue;
      close(slow[j]); /* the server closed it: connect again */
      slow[j] = connect_client();
    }
  }
  for (int i = 0; i < SLOW_CLIENTS; i++)
    close(slow[i]);
}

static void a_request_that_trickles_is_ended(void **state)
{
  int fd = connect_client();
  int64_t begin_ns = clock_now_ns();
  char byte;

  (void)state;
  assert_true(send(fd, "GET / HTTP/1.1\r\nX-Slow: ", 24, MSG_NOSIGNAL) == 24);
  while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) != 0) {
    assert_true(clock_now_ns() - begin_ns < 6 * HTTP_REQUEST_S * CLOCK_NS_PER_S);
    clock_sleep_ns(50 * CLOCK_NS_PER_MS);
  }
  assert_true(clock_now_ns() - begin_ns >= (HTTP_REQUEST_S - 1) * CLOCK_NS_PER_S);
  close(fd);
}

static void a_connection_is_kept_for_the_next_request(void **state)
{
  static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  char answer[ANSWER_BYTES];
  int fd = connect_client();

  (void)state;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    read_answer(fd, answer);
    assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
  }
  close(fd);
}

static void a_port_in_use_is_an_error(void **state)
{
  static const struct config_list no_hosts;
  struct http *second = NULL;
  char listen[32];

  (void)state;
  snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
  assert_int_equal(http_open(listen, &no_hosts, &status, &second), ERR_SYSTEM); /* a restart may help */
  assert_non_null(strstr(err_message(), "choose another port, or see what has this one: ss -ltnp"));
  assert_non_null(strstr(err_message(), "Address already in use"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(readiness_has_a_reason),
    cmocka_unit_test(clients_neither_cache_nor_guess_the_type),
    cmocka_unit_test(head_has_the_headers_without_the_body),
    cmocka_unit_test(other_methods_get_405_with_the_allowed_ones),
    cmocka_unit_test(an_unknown_host_gets_421),
    cmocka_unit_test(hosts_are_matched_by_address_name_and_list),
    cmocka_unit_test(a_connection_is_kept_for_the_next_request),
    cmocka_unit_test(data_is_shown_only_under_a_known_host),
    cmocka_unit_test(slow_clients_do_not_lock_out_a_probe),
    cmocka_unit_test(a_request_that_trickles_is_ended),
    cmocka_unit_test(a_port_in_use_is_an_error),
  };

  return cmocka_run_group_tests(tests, open_http, close_http);
}
