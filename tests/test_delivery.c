/* What leaves the daemon, under brokers that are slow, full or away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/delivery.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"

static struct kafka_fixture kafka;
static struct counters counters;

static int open_broker(void **state)
{
  (void)state;
  kafka_fixture_init(&kafka);
  return 0;
}

static int close_broker(void **state)
{
  (void)state;
  kafka_fixture_fini(&kafka);
  return 0;
}

static struct delivery *open_delivery(const struct kafka_property *own, size_t n)
{
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, false, own, n);
  struct delivery *d;

  memset(&counters, 0, sizeof counters);
  assert_ok(delivery_open(&layers, &counters, &d));
  return d;
}

static struct delivery_dead_letter letter_of(const char *topic, const char *reason, int64_t offset)
{
  return (struct delivery_dead_letter){ .topic = topic,
                                        .has_key = true,
                                        .key = span_of_str("key"),
                                        .has_value = offset % 2,
                                        .value = span_of_str("value"),
                                        .source_topic = "items",
                                        .partition = 3,
                                        .offset = offset,
                                        .reason = reason };
}

static err_t fail_for(int64_t offset)
{
  FAIL(ERR_ITEM, "this is what was wrong with the record at offset %d", (int)offset);
}

/* The reason is the thread's newest failure, and a full queue is a failure too. */
static void a_dead_letter_keeps_its_reason_while_the_queue_is_full(void **state)
{
  static const struct kafka_property own[] = { { "queue.buffering.max.messages", "1" }, { "linger.ms", "20" } };
  struct delivery *d = open_delivery(own, 2);
  struct kafka_tap tap;
  char text[2048], want[100];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "letters", 1));
  for (int64_t offset = 0; offset < 8; offset++) {
    assert_int_equal(fail_for(offset), ERR_ITEM);
    struct delivery_dead_letter letter = letter_of("letters", err_message(), offset);
    delivery_dead_letter(d, &letter);
  }
  assert_true(delivery_wait_for_dead_letters(d));
  kafka_tap_init(&tap, &kafka, "letters", 1);
  for (int64_t offset = 0; offset < 8; offset++) {
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    snprintf(want, sizeof want, "this is what was wrong with the record at offset %d", (int)offset);
    assert_string_equal(kafka_tap_header(m, "sluice.reason", text), want);
    assert_string_equal(kafka_tap_header(m, "sluice.topic", text), "items");
    assert_string_equal(kafka_tap_header(m, "sluice.partition", text), "3");
    assert_int_equal(strtol(kafka_tap_header(m, "sluice.offset", text), NULL, 10), offset);
    assert_true(span_equal(span_of(m->key, m->key_len), span_of_str("key")));
    assert_int_equal(m->payload != NULL, offset % 2); /* the original value, tombstones too */
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  delivery_close(&d);
  assert_null(d);
  assert_int_equal(counters_get(&counters.dead_letters), 8);
  assert_int_equal(counters_get(&counters.undeliverable), 0);
}

static void a_reply_carries_key_value_and_format(void **state)
{
  struct delivery *d = open_delivery(NULL, 0);
  struct delivery_reply reply = {
    .topic = "replies", .has_key = true, .key = span_of_str("client"), .value = span_of_str("{}"), .format = WIRE_JSON,
  };
  struct kafka_tap tap;
  char text[2048];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "replies", 1));
  assert_ok(delivery_reply(d, &reply));
  reply.has_key = false;
  reply.format = WIRE_PROTOBUF;
  assert_ok(delivery_reply(d, &reply));
  delivery_close(&d); /* waits for the broker */
  kafka_tap_init(&tap, &kafka, "replies", 1);
  for (int i = 0; i < 2; i++) {
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    assert_string_equal(kafka_tap_header(m, "content-type", text), i ? "application/x-protobuf" : "application/json");
    assert_int_equal(m->key != NULL, i == 0);
    assert_true(span_equal(span_of(m->payload, m->len), span_of_str("{}")));
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  assert_int_equal(counters_get(&counters.undeliverable), 0);
}

static void nobody_waits_for_a_broker_beyond_the_time_to_give_up(void **state)
{
  static const struct kafka_property own[] = { { "bootstrap.servers", "127.0.0.1:1" },
                                               { "queue.buffering.max.messages", "2" } };
  struct delivery *d = open_delivery(own, 2);
  struct delivery_dead_letter letter = letter_of("letters", "no broker", 1);

  (void)state;
  int64_t begin_ns = clock_now_ns();
  delivery_give_up_at(d, begin_ns + 100 * CLOCK_NS_PER_MS);
  for (int i = 0; i < 4; i++)
    delivery_dead_letter(d, &letter); /* two too many for the queue */
  assert_false(delivery_wait_for_dead_letters(d));
  assert_true(clock_now_ns() - begin_ns >= 100 * CLOCK_NS_PER_MS);
  delivery_close(&d);
  assert_true(clock_now_ns() - begin_ns < 4 * CLOCK_NS_PER_S);
  assert_int_equal(counters_get(&counters.undeliverable), 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_dead_letter_keeps_its_reason_while_the_queue_is_full),
    cmocka_unit_test(a_reply_carries_key_value_and_format),
    cmocka_unit_test(nobody_waits_for_a_broker_beyond_the_time_to_give_up),
  };

  return cmocka_run_group_tests(tests, open_broker, close_broker);
}
