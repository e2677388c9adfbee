/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded broker, used by several clients at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/kafka_fixture.h"

static void it_listens_on_the_loopback_interface_alone(void **state)
{
  struct kafka_fixture kafka;
  int port, n = 0;

  (void)state;
  kafka_fixture_init(&kafka);
  assert_int_equal(sscanf(embedded_broker_bootstrap(kafka.broker), "127.0.0.1:%d%n", &port, &n), 1);
  assert_int_equal(embedded_broker_bootstrap(kafka.broker)[n], '\0');
  assert_in_range(port, 1024, 65535);
  kafka_fixture_fini(&kafka);
  assert_null(kafka.broker);
  embedded_broker_close(&kafka.broker);
}

static void topics_have_the_partitions_that_were_asked_for(void **state)
{
  struct kafka_fixture kafka;
  char topic[16];

  (void)state;
  kafka_fixture_init(&kafka);
  struct kafka_layers layers = kafka_fixture_layers(&kafka, true);
  for (int want = 1; want <= 7; want += 3) {
    struct topic_reader *r;
    int n;
    snprintf(topic, sizeof topic, "t%d", want);
    assert_ok(embedded_broker_create_topic(kafka.broker, topic, want));
    assert_ok(topic_reader_open(&layers, topic, &r));
    assert_ok(topic_reader_n_partitions(r, KAFKA_TIMEOUT_MS, &n));
    assert_int_equal(n, want);
    for (int32_t p = 0; p < n; p++) {
      int64_t first, end;
      assert_ok(topic_reader_bounds(r, p, KAFKA_TIMEOUT_MS, &first, &end));
      assert_true(first == 0 && end == 0);
    }
    topic_reader_close(&r);
  }
  assert_fails(embedded_broker_create_topic(kafka.broker, "t1", 2), ERR_KAFKA, "t1"); /* it exists already */
  kafka_fixture_fini(&kafka);
}

/* Send a value, a tombstone and an empty value, and read them back. */
static void what_is_produced_is_consumed_by_several_clients_at_once(void **state)
{
  struct kafka_fixture kafka;
  struct sender *s;
  struct topic_reader *readers[3];

  (void)state;
  kafka_fixture_init(&kafka);
  assert_ok(embedded_broker_create_topic(kafka.broker, "shared", 1));
  struct kafka_layers producer = kafka_fixture_layers(&kafka, false), consumer = kafka_fixture_layers(&kafka, true);
  for (int i = 0; i < 3; i++) {
    assert_ok(topic_reader_open(&consumer, "shared", &readers[i]));
    assert_ok(topic_reader_assign(readers[i], 0, 0));
  }
  assert_ok(sender_open(&producer, NULL, NULL, &s));
  for (int i = 0; i < 30; i++) {
    struct sender_message message = { .topic = "shared", .has_key = true, .key = span_of_str("k"), .has_value = i % 3,
                                      .value = span_of("v", i % 3 == 2 ? 0 : 1) };
    assert_ok(sender_send(s, &message));
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  for (int i = 0; i < 3; i++) {
    int64_t end_ns = kafka_deadline_ns();
    for (int64_t next = 0; next < 30;) {
      struct topic_record records[8];
      struct topic_events events;
      size_t n;
      topic_reader_poll(readers[i], 8, 100, records, &n, &events);
      for (size_t j = 0; j < n; j++) {
        if (records[j].is_end)
          continue;
        assert_int_equal(records[j].offset, next);
        assert_int_equal(records[j].has_value, next % 3 != 0);
        assert_int_equal(records[j].value.n, next % 3 == 1);
        next++;
      }
      topic_reader_release_all(readers[i]);
      assert_true(clock_now_ns() < end_ns);
    }
    topic_reader_close(&readers[i]);
  }
  sender_close(&s);
  kafka_fixture_fini(&kafka);
}

static void two_brokers_do_not_know_each_other(void **state)
{
  struct kafka_fixture a, b;
  struct topic_reader *r;
  struct sender *s;
  int64_t first, end;

  (void)state;
  kafka_fixture_init(&a);
  kafka_fixture_init(&b);
  assert_string_not_equal(embedded_broker_bootstrap(a.broker), embedded_broker_bootstrap(b.broker));
  assert_ok(embedded_broker_create_topic(a.broker, "t", 1));
  assert_ok(embedded_broker_create_topic(b.broker, "t", 1));
  struct kafka_layers to_a = kafka_fixture_layers(&a, false), from_b = kafka_fixture_layers(&b, true);
  struct sender_message message = { .topic = "t", .has_value = true, .value = span_of_str("v") };
  assert_ok(sender_open(&to_a, NULL, NULL, &s));
  assert_ok(sender_send(s, &message));
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_open(&from_b, "t", &r));
  assert_ok(topic_reader_bounds(r, 0, KAFKA_TIMEOUT_MS, &first, &end));
  assert_int_equal(end, 0);
  topic_reader_close(&r);
  sender_close(&s);
  kafka_fixture_fini(&a);
  kafka_fixture_fini(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_listens_on_the_loopback_interface_alone),
    cmocka_unit_test(topics_have_the_partitions_that_were_asked_for),
    cmocka_unit_test(what_is_produced_is_consumed_by_several_clients_at_once),
    cmocka_unit_test(two_brokers_do_not_know_each_other),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
