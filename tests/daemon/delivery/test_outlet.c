/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of an outlet's messages while their topic is away, while brokers refuse them, when certificates change,
 * and when it closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/delivery/outlet.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"
#include "tests/support/tls_property.h"

enum { PARTITIONS = 8, RECORDS_MAX = 4, NOT_ENDED = -1 };

struct record {
  struct outlet_item item; /* first: the outlet knows the record by it */
  _Atomic int end;
  _Atomic int n_ends;
};

/* A broker and an outlet with some records. */
static struct {
  struct stubborn_broker broker;
  struct outlet *outlet;
  struct record records[RECORDS_MAX];
  _Atomic uint64_t n_tries; /* to send a message, or to send it again */
  _Atomic size_t most_waiting; /* at any tick */
} w;

static void on_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                     const struct sender_message *message)
{
  struct record *r = (struct record *)item;

  assert_ptr_equal(context, &w);
  assert_true(end != OUTLET_REFUSED || (reason && message));
  atomic_store(&r->end, (int)end);
  atomic_fetch_add(&r->n_ends, 1);
}

static void on_tick(void *context, struct outlet *outlet)
{
  size_t n = outlet_n_waiting(outlet);

  (void)context;
  if (n > atomic_load(&w.most_waiting))
    atomic_store(&w.most_waiting, n);
}

/* The linker gives these names. NOLINTBEGIN(bugprone-reserved-identifier) */
enum sender_fate __real_sender_try(struct sender *s, const struct sender_message *message, const char **reason);
enum sender_fate __wrap_sender_try(struct sender *s, const struct sender_message *message, const char **reason);

enum sender_fate __wrap_sender_try(struct sender *s, const struct sender_message *message, const char **reason)
{
  atomic_fetch_add(&w.n_tries, 1);
  return __real_sender_try(s, message, reason);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int begin(void **state)
{
  (void)state;
  memset(&w, 0, sizeof w);
  for (size_t i = 0; i < RECORDS_MAX; i++)
    w.records[i].end = NOT_ENDED;
  stubborn_broker_init(&w.broker);
  assert_int_equal(rd_kafka_mock_topic_create(w.broker.cluster, "topic", PARTITIONS, 1), 0);
  return 0;
}

static int end(void **state)
{
  (void)state;
  outlet_close(&w.outlet);
  for (size_t i = 0; i < RECORDS_MAX; i++)
    assert_int_equal(w.records[i].n_ends, w.records[i].end != NOT_ENDED);
  stubborn_broker_fini(&w.broker);
  return 0;
}

static void open_outlet(bool is_patient, const struct kafka_property *own, size_t n)
{
  struct kafka_layers layers = stubborn_broker_layers(&w.broker, false, own, n);
  const struct outlet_config config = {
    .name = "test", .layers = &layers, .is_patient = is_patient, .context = &w, .ended = on_ended, .ticked = on_tick
  };

  assert_ok(outlet_open(&config, &w.outlet));
}

static void send_record(size_t i)
{
  const struct sender_message message = {
    .topic = "topic", .has_key = true, .key = span_of_str("client"), .has_value = true, .value = span_of_str("value")
  };

  outlet_send_later(w.outlet, &w.records[i].item, &message);
}

static void wait_for_end(size_t i, enum outlet_end how)
{
  int64_t end_ns = clock_now_ns() + 3 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;

  while (w.records[i].end == NOT_ENDED && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(w.records[i].end, how);
}

static void wait_until_away(bool is_away)
{
  int64_t end_ns = kafka_deadline_ns();

  while (outlet_is_away(w.outlet) != is_away && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(outlet_is_away(w.outlet), is_away);
}

static void wait_for_tries(size_t n)
{
  uint64_t n_tries = w.n_tries + n;
  int64_t end_ns = clock_now_ns() + 3 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;

  while (w.n_tries < n_tries && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_true(w.n_tries >= n_tries);
}

/* While the outlet tries a message again, that one does not wait. */
static void wait_until_waiting(size_t n)
{
  int64_t end_ns = kafka_deadline_ns();
  size_t found;

  while ((found = outlet_n_waiting(w.outlet)) != n && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS / 10);
  assert_int_equal(found, n);
}

/* ---- A topic that is away ---- */

/* Also those that came while it was tried again alone. */
static void messages_wait_for_their_topic_and_none_is_lost(void **state)
{
  static const struct kafka_property own[] = { { "topic.metadata.propagation.max.ms", "0" } };

  (void)state;
  open_outlet(true, own, 1);
  stubborn_broker_hide(&w.broker, "topic", true);
  for (size_t i = 0; i < 3; i++) {
    send_record(i);
    wait_until_away(true);
    wait_for_tries(2);
    assert_int_equal(w.records[i].end, NOT_ENDED);
  }
  stubborn_broker_hide(&w.broker, "topic", false);
  for (size_t i = 0; i < 3; i++)
    wait_for_end(i, OUTLET_DELIVERED);
  wait_until_away(false);
  assert_int_equal(outlet_n_waiting(w.outlet), 0);
}

static void an_impatient_outlet_refuses_what_another_would_keep(void **state)
{
  static const struct kafka_property own[] = { { "topic.metadata.propagation.max.ms", "0" } };

  (void)state;
  open_outlet(false, own, 1);
  stubborn_broker_hide(&w.broker, "topic", true);
  send_record(0);
  wait_for_end(0, OUTLET_REFUSED);
  stubborn_broker_hide(&w.broker, "topic", false);
  stubborn_broker_refuse(&w.broker, RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, 1);
  send_record(1);
  wait_for_end(1, OUTLET_REFUSED);
  assert_false(outlet_is_away(w.outlet));
}

/* ---- Brokers that refuse ---- */

static void a_failure_that_may_pass_is_tried_again_but_not_for_ever(void **state)
{
  (void)state;
  open_outlet(true, NULL, 0);
  stubborn_broker_refuse(&w.broker, RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, SENDER_UNSURE_MAX);
  send_record(0);
  wait_for_end(0, OUTLET_REFUSED);
  send_record(1); /* the broker has no refusal left */
  wait_for_end(1, OUTLET_DELIVERED);
}

/* Its neighbours may have been the large ones. The topic is not away. */
static void a_message_is_too_large_if_a_broker_says_so_twice(void **state)
{
  size_t n_before = log_watch_count("event=delivery_waiting"); /* of other tests */

  (void)state;
  open_outlet(true, NULL, 0);
  stubborn_broker_refuse(&w.broker, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
  send_record(0);
  wait_for_end(0, OUTLET_DELIVERED);
  stubborn_broker_refuse(&w.broker, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 2);
  send_record(1);
  wait_for_end(1, OUTLET_REFUSED);
  assert_false(outlet_is_away(w.outlet));
  assert_int_equal(log_watch_count("event=delivery_waiting"), n_before);
  send_record(2);
  wait_for_end(2, OUTLET_DELIVERED);
}

/* ---- Certificates that change ---- */

/* Open an outlet whose next producer will send the key to another partition, and deliver a first record. Returns the
 * partition. */
static int32_t open_and_send(struct kafka_tap *tap)
{
  tls_property[1].value = "consistent";
  open_outlet(true, tls_property, 2);
  kafka_tap_open(tap, rd_kafka_mock_cluster_bootstraps(w.broker.cluster), "topic", PARTITIONS);
  send_record(0);
  wait_for_end(0, OUTLET_DELIVERED);
  rd_kafka_message_t *m = kafka_tap_next(tap, KAFKA_TIMEOUT_MS);
  assert_non_null(m);
  int32_t partition = m->partition;
  rd_kafka_message_destroy(m);
  return partition;
}

static void renew(void)
{
  kafka_renewal_lock();
  tls_property[1].value = "murmur2_random";
  kafka_renewal_unlock();
  tls_property_renew(true);
}

static void assert_next_partition(struct kafka_tap *tap, int32_t partition, bool is_same)
{
  rd_kafka_message_t *m = kafka_tap_next(tap, KAFKA_TIMEOUT_MS);

  assert_non_null(m);
  assert_int_equal(m->partition == partition, is_same);
  rd_kafka_message_destroy(m);
}

/* A certificate that has expired may be why no broker lets the former one in. */
static void what_the_former_producer_cannot_send_is_sent_by_the_next(void **state)
{
  int64_t end_ns = clock_now_ns() + 3 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;
  struct kafka_tap tap;

  (void)state;
  int32_t former = open_and_send(&tap);
  rd_kafka_mock_broker_set_down(w.broker.cluster, 1);
  send_record(1);
  renew();
  while (w.most_waiting == 0 && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(w.most_waiting, 1); /* it was taken back */
  rd_kafka_mock_broker_set_up(w.broker.cluster, 1);
  wait_for_end(1, OUTLET_DELIVERED);
  assert_next_partition(&tap, former, false);
  kafka_tap_fini(&tap);
}

/* Have the broker take long to answer the next Produce request. */
static void delay_answer(int ms)
{
  assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(w.broker.cluster, 1, STUBBORN_PRODUCE, 1,
                                                                RD_KAFKA_RESP_ERR_NO_ERROR, ms),
                   RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* Wait until the broker has that request. */
static void wait_for_request(void)
{
  int64_t end_ns = kafka_deadline_ns();
  size_t n_to_come = 1;

  while (n_to_come > 0 && clock_now_ns() < end_ns) {
    assert_int_equal(rd_kafka_mock_broker_error_stack_cnt(w.broker.cluster, 1, STUBBORN_PRODUCE, &n_to_come),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    clock_sleep_ns(CLOCK_NS_PER_MS);
  }
  assert_int_equal(n_to_come, 0);
}

/* The broker takes long to answer. Meanwhile the next producer is used. */
static void what_the_former_producer_has_sent_is_not_sent_again(void **state)
{
  struct kafka_tap tap;

  (void)state;
  int32_t former = open_and_send(&tap);
  delay_answer(3000);
  send_record(1);
  wait_for_request();
  renew();
  wait_for_end(1, OUTLET_DELIVERED);
  assert_int_equal(w.most_waiting, 0);
  assert_next_partition(&tap, former, true);
  send_record(2);
  wait_for_end(2, OUTLET_DELIVERED);
  assert_next_partition(&tap, former, false);
  kafka_tap_fini(&tap);
}

/* ---- Closing ---- */

static void what_is_not_sent_ends_when_the_outlet_closes(void **state)
{
  static const struct kafka_property own[] = { { "bootstrap.servers", "127.0.0.1:1" },
                                               { "queue.buffering.max.messages", "2" } };

  (void)state;
  open_outlet(true, own, 2);
  for (size_t i = 0; i < 4; i++)
    send_record(i);
  wait_until_waiting(2);
  outlet_close(&w.outlet);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(w.records[i].end, OUTLET_CLOSED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(messages_wait_for_their_topic_and_none_is_lost),
    TEST(an_impatient_outlet_refuses_what_another_would_keep),
    TEST(a_failure_that_may_pass_is_tried_again_but_not_for_ever),
    TEST(a_message_is_too_large_if_a_broker_says_so_twice),
    TEST(what_the_former_producer_cannot_send_is_sent_by_the_next),
    TEST(what_the_former_producer_has_sent_is_not_sent_again),
    TEST(what_is_not_sent_ends_when_the_outlet_closes),
  };

  return SIDE_BY_SIDE(tests, NULL, NULL);
}
