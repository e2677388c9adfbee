/* SPDX-License-Identifier: Apache-2.0 */
/* /try over real sockets while no worker answers: the thread serves all others, and gives up in time. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/http/http.h"
#include "daemon/queries/query_queue.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ANSWER_BYTES = 16384, WAIT_MS = 60000 };

static struct temp_dir dir;
static struct engine *engine;
static struct query_queue *queue;
static struct counters counters;
static struct config_space space = { .name = (char *)"v" };
static const struct config config = { .spaces = &space, .n_spaces = 1, .http.data = CONFIG_DATA_LOCAL };
static struct trial *trial;
static struct status status;
static struct http *http;
static struct region scratch;
static int port;

static const char request[] = "GET /try?key=item&space=v HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

static void open_engine(void)
{
  static char path[PATH_MAX];
  static const float one = 1.0f;
  struct engine_space engine_space = { .name = "v", .model_path = path };
  struct engine_config engine_config = {
    .spaces = &engine_space, .n_spaces = 1, .max_items = 10, .max_k = 50, .max_batch = 4
  };

  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  assert_ok(engine_open(&engine_config, &engine));
  fixture_put_vector(engine, span_of_str("item"), "v", &one, 1);
}

static void open_trial(void)
{
  static const uint32_t weight = 1;
  struct fair_queue_config queue_config = {
    .weights = &weight, .n_spaces = 1, .n_workers = 1, .n_queries = 4, .max_batch = 4, .batch_time_ns = 1
  };

  assert_ok(query_queue_open(&queue_config, 1 << 20, &queue));
  struct trial_context context = { &config, engine, queue, &counters };
  assert_ok(trial_open(&context, &trial));
  trial_allow(trial, true);
}

static void find_port(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t n = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
  close(fd);
  port = ntohs(address.sin_port);
}

static int open_all(void **state)
{
  static const struct config_list no_hosts;
  char listen[32];

  (void)state;
  open_engine();
  open_trial();
  find_port();
  status.config = &config;
  status.engine = engine;
  status.trial = trial;
  snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
  return http_open(listen, &no_hosts, &status, &http) != ERR_OK;
}

static int close_all(void **state)
{
  (void)state;
  http_close(&http);
  trial_close(&trial);
  query_queue_close(&queue);
  engine_close(&engine);
  temp_dir_fini(&dir);
  region_fini(&scratch);
  return 0;
}

static int send_request(const char *text)
{
  struct sockaddr_in address = { .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  return fd;
}

/* Read until the server closes. */
static void read_answer(int fd, char answer[ANSWER_BYTES])
{
  struct pollfd p = { .fd = fd, .events = POLLIN };
  size_t n = 0;
  ssize_t more;

  while (n < ANSWER_BYTES - 1 && poll(&p, 1, WAIT_MS) == 1 && (more = read(fd, answer + n, ANSWER_BYTES - 1 - n)) > 0)
    n += (size_t)more;
  answer[n] = '\0';
  close(fd);
}

static void assert_has(const char *answer, const char *words)
{
  if (!strstr(answer, words))
    fail_msg("%s\ndoes not have: %s", answer, words);
}

/* Wait until a worker could take the trial, take it, and answer it. */
static void search(void)
{
  struct pending_query *queries[4];
  struct query_batch batch = { .queries = queries };
  struct answer answer = { .space = span_of_str("v") };

  assert_true(query_queue_pop(queue, &batch));
  trial_answer(trial, &answer, &scratch);
  query_queue_finish(queue, &batch, 1, 1);
}

/* The thread has served all that came before. */
static void probe(void)
{
  char answer[ANSWER_BYTES];

  read_answer(send_request("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
}

static void others_are_served_while_a_trial_waits(void **state)
{
  char answer[ANSWER_BYTES];
  int fd = send_request(request);

  (void)state;
  for (int i = 0; i < 3; i++)
    probe();
  struct pollfd p = { .fd = fd, .events = POLLIN };
  assert_int_equal(poll(&p, 1, 0), 0);
  search();
  read_answer(fd, answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
  assert_has(answer, "Receipt: ");
  probe();
}

static void a_second_one_is_told_to_wait(void **state)
{
  char answer[ANSWER_BYTES];
  uint64_t n_refused = counters_get(&counters.tries_refused);
  int first = send_request(request), second = send_request(request);
  struct pollfd both[] = { { .fd = first, .events = POLLIN }, { .fd = second, .events = POLLIN } };

  (void)state;
  assert_int_equal(poll(both, 2, WAIT_MS), 1); /* the server chose which one is first */
  read_answer(both[0].revents ? first : second, answer);
  assert_memory_equal(answer, "HTTP/1.1 503 ", 13);
  assert_has(answer, "another query is being tried");
  assert_int_equal(counters_get(&counters.tries_refused), n_refused + 1);
  search();
  read_answer(both[0].revents ? second : first, answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
  probe();
}

static void a_client_that_leaves_does_no_harm(void **state)
{
  char answer[ANSWER_BYTES];
  int fd = send_request(request);

  (void)state;
  probe();
  close(fd);
  search();
  probe();
  fd = send_request(request);
  search();
  read_answer(fd, answer);
  assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
}

static void without_a_worker_it_is_given_up(void **state)
{
  char answer[ANSWER_BYTES];
  int64_t begin_ns = clock_now_ns();

  (void)state;
  read_answer(send_request(request), answer);
  assert_memory_equal(answer, "HTTP/1.1 504 ", 13);
  assert_has(answer, "No worker was free");
  assert_true(clock_now_ns() - begin_ns >= TRIAL_WAIT_S * CLOCK_NS_PER_S);
}

/* The last test: close_all() ends the endpoint while a trial waits. */
static void a_stop_does_not_wait_for_it(void **state)
{
  (void)state;
  send_request(request);
  probe();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(others_are_served_while_a_trial_waits), cmocka_unit_test(a_second_one_is_told_to_wait),
    cmocka_unit_test(a_client_that_leaves_does_no_harm),     cmocka_unit_test(without_a_worker_it_is_given_up),
    cmocka_unit_test(a_stop_does_not_wait_for_it),
  };

  return cmocka_run_group_tests(tests, open_all, close_all);
}
