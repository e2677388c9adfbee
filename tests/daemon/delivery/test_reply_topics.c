/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of replies to topics that queries name: many topics, missing ones, and too many replies to one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "daemon/delivery/reply_topics.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"

static struct stubborn_broker broker;

/* How the replies ended. */
static struct {
  _Atomic size_t n[OUTLET_LOST + 1];
  _Atomic size_t n_all;
} ends;

static void on_ended(void *context, struct reply_topics_item *item, enum outlet_end end, const char *reason)
{
  assert_ptr_equal(context, &ends);
  assert_true(end != OUTLET_REFUSED || reason);
  atomic_fetch_add(&ends.n[end], 1);
  atomic_fetch_add(&ends.n_all, 1);
  mem_free(&item);
}

static int open_broker(void **state)
{
  (void)state;
  stubborn_broker_init(&broker);
  return 0;
}

static int close_broker(void **state)
{
  (void)state;
  stubborn_broker_fini(&broker);
  return 0;
}

static struct reply_topics *open_topics(uint64_t timeout_ms)
{
  struct kafka_layers layers = stubborn_broker_layers(&broker, false, NULL, 0);
  struct reply_topics_config config = { &layers, timeout_ms, &ends, on_ended };
  struct reply_topics *r;

  memset(&ends, 0, sizeof ends);
  assert_ok(reply_topics_open(&config, &r));
  return r;
}

/* Returns NULL, or why the reply was not accepted. */
static const char *reply_to(struct reply_topics *r, const char *topic)
{
  struct sender_message message = { .topic = topic, .has_value = true, .value = span_of_str("{}") };
  struct reply_topics_item *item;

  assert_ok(mem_array(1, sizeof *item, &item));
  const char *reason = reply_topics_send(r, item, &message);
  if (reason)
    mem_free(&item);
  return reason;
}

static void wait_for(const _Atomic size_t *count, size_t n)
{
  int64_t end_ns = clock_now_ns() + 60 * CLOCK_NS_PER_S;

  while (atomic_load(count) < n && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(atomic_load(count), n);
}

/* Ever new clients, each with a topic of its own. */
static void topics_are_forgotten_when_there_are_too_many(void **state)
{
  enum { TOPICS = 2 * REPLY_TOPICS_MAX + 10 };
  struct reply_topics *r = open_topics(30000);
  size_t n_topics, n_producers;
  char topic[32];

  (void)state;
  for (size_t i = 0; i < TOPICS; i++) {
    int64_t end_ns = clock_now_ns() + 60 * CLOCK_NS_PER_S;
    snprintf(topic, sizeof topic, "client-%zu", i);
    const char *reason;
    while ((reason = reply_to(r, topic)) && clock_now_ns() < end_ns) {
      assert_non_null(strstr(reason, "too many different reply topics"));
      clock_sleep_ns(10 * CLOCK_NS_PER_MS);
    }
    assert_null(reason);
  }
  wait_for(&ends.n[OUTLET_DELIVERED], TOPICS);
  reply_topics_count(r, &n_topics, &n_producers);
  assert_int_equal(n_topics, TOPICS - 2 * REPLY_TOPICS_MAX);
  int64_t end_ns = kafka_deadline_ns();
  while (n_producers > 1 && clock_now_ns() < end_ns) {
    clock_sleep_ns(CLOCK_NS_PER_MS);
    reply_topics_count(r, &n_topics, &n_producers);
  }
  assert_int_equal(n_producers, 1); /* the old producers are closed, and their topics forgotten */
  reply_topics_close(&r);
  assert_null(r);
  assert_int_equal(ends.n_all, TOPICS);
}

static void a_missing_topic_is_noticed_and_remembered(void **state)
{
  struct reply_topics *r = open_topics(60000);

  (void)state;
  stubborn_broker_hide(&broker, "missing", true);
  int64_t begin_ns = clock_now_ns();
  assert_null(reply_to(r, "missing"));
  wait_for(&ends.n[OUTLET_REFUSED], 1);
  assert_true(clock_now_ns() - begin_ns < 20 * CLOCK_NS_PER_S); /* about 3 s, and not the time limit */
  assert_null(reply_to(r, "missing"));
  assert_int_equal(ends.n[OUTLET_REFUSED], 2); /* at once */
  reply_topics_close(&r);
}

/* A topic without a leader must leave room for all others. */
static void a_topic_that_accepts_nothing_has_a_bound_of_its_own(void **state)
{
  struct reply_topics *r = open_topics(3000);
  const char *reason = NULL;
  size_t n = 0;

  (void)state;
  assert_int_equal(rd_kafka_mock_topic_create(broker.cluster, "leaderless", 1, 1), 0);
  rd_kafka_mock_partition_set_leader(broker.cluster, "leaderless", 0, -1);
  while (!(reason = reply_to(r, "leaderless")) && n <= REPLY_TOPIC_IN_FLIGHT_MAX)
    n++;
  assert_int_equal(n, REPLY_TOPIC_IN_FLIGHT_MAX);
  assert_non_null(strstr(reason, "this topic"));
  assert_null(reply_to(r, "healthy"));
  wait_for(&ends.n[OUTLET_DELIVERED], 1);
  wait_for(&ends.n[OUTLET_REFUSED], n); /* their time is up */
  reply_topics_close(&r);
  assert_int_equal(ends.n_all, n + 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(topics_are_forgotten_when_there_are_too_many),
    cmocka_unit_test(a_missing_topic_is_noticed_and_remembered),
    cmocka_unit_test(a_topic_that_accepts_nothing_has_a_bound_of_its_own),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
