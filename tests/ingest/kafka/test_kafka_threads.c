/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a Kafka client: which there are, and that all of them stand back. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/stand_back.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_threads.h"
#include "tests/support/kafka_fixture.h"

static struct kafka_fixture kafka;
static struct kafka_threads threads;

static size_t n_threads(void)
{
  pthread_mutex_lock(&threads.lock);
  size_t n = threads.n;
  pthread_mutex_unlock(&threads.lock);
  return n;
}

/* Have all listed threads this policy? */
static bool all_have(int policy)
{
  bool all = true;

  pthread_mutex_lock(&threads.lock);
  for (size_t i = 0; i < threads.n; i++)
    all &= sched_getscheduler(threads.ids[i]) == policy;
  pthread_mutex_unlock(&threads.lock);
  return all;
}

static int open_socket(int domain, int type, int protocol, void *opaque)
{
  (void)opaque;
  return kafka_threads_open_socket(&threads, domain, type, protocol);
}

static int close_socket(int socket, void *opaque)
{
  (void)opaque;
  return kafka_threads_close_socket(&threads, socket);
}

static rd_kafka_t *open_client(void)
{
  const struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  rd_kafka_conf_t *conf;
  rd_kafka_t *rk;

  kafka_threads_init(&threads);
  assert_ok(kafka_conf_make(&layers, &conf));
  rd_kafka_conf_set_socket_cb(conf, open_socket);
  rd_kafka_conf_set_closesocket_cb(conf, close_socket);
  assert_ok(kafka_client_new(RD_KAFKA_PRODUCER, conf, &rk));
  return rk;
}

/* Have it connect: that starts a thread for the broker. */
static void connect_to_broker(rd_kafka_t *rk)
{
  const struct rd_kafka_metadata *metadata;

  assert_int_equal(rd_kafka_metadata(rk, false, NULL, &metadata, KAFKA_TIMEOUT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_metadata_destroy(metadata);
}

static void threads_are_listed_while_they_have_a_connection(void **state)
{
  (void)state;
  rd_kafka_t *rk = open_client();

  connect_to_broker(rk);
  assert_in_range(n_threads(), 1, KAFKA_THREADS_MAX);
  kafka_client_destroy(rk, 0);
  assert_int_equal(n_threads(), 0);
  kafka_threads_fini(&threads);
}

static void all_threads_stand_back_those_that_connect_later_too(void **state)
{
  struct stand_back may_return = { 0 };

  (void)state;
  stand_back_init(&may_return);
  rd_kafka_t *rk = open_client();
  kafka_threads_stand_back(&threads, true);
  connect_to_broker(rk);
  assert_in_range(n_threads(), 1, KAFKA_THREADS_MAX);
  assert_true(all_have(SCHED_IDLE));
  assert_int_equal(sched_getscheduler(0), may_return.policy); /* ours is not one of them */
  kafka_threads_stand_back(&threads, false);
  if (may_return.is_possible)
    assert_true(all_have(may_return.policy));
  kafka_threads_stand_back(&threads, true);
  assert_true(all_have(SCHED_IDLE));
  kafka_client_destroy(rk, 0);
  kafka_threads_fini(&threads);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_are_listed_while_they_have_a_connection),
    cmocka_unit_test(all_threads_stand_back_those_that_connect_later_too),
  };

  kafka_fixture_init(&kafka);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kafka_fixture_fini(&kafka);
  return failed;
}
