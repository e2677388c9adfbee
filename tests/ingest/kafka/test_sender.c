/* SPDX-License-Identifier: Apache-2.0 */
/* The producer: each message is reported exactly once, with its fate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"

enum { MAX_MESSAGES = 2000 };

static struct kafka_fixture kafka;

/* The reports of each message i. Its opaque is i + 1. */
struct reports {
  unsigned n[MAX_MESSAGES];
  enum sender_fate fate[MAX_MESSAGES];
  bool has_reason[MAX_MESSAGES];
  char newest_reason[128];
  char value[MAX_MESSAGES][16]; /* value of a message that was not delivered */
  int32_t partition[MAX_MESSAGES];
  int64_t offset[MAX_MESSAGES];
  size_t n_all;
};

static struct reports reports;

static void on_report(void *context, const struct sender_report *report)
{
  struct reports *r = context;
  size_t i = (size_t)(uintptr_t)report->opaque - 1;

  assert_true(i < MAX_MESSAGES);
  r->n[i]++;
  r->fate[i] = report->fate;
  assert_int_equal(report->message == NULL, report->fate == SENDER_DELIVERED);
  if (report->message)
    snprintf(r->value[i], sizeof r->value[i], "%.*s", (int)report->message->value.n,
             (const char *)report->message->value.p);
  r->has_reason[i] = report->reason && *report->reason;
  snprintf(r->newest_reason, sizeof r->newest_reason, "%s", report->reason ? report->reason : "");
  r->partition[i] = report->partition;
  r->offset[i] = report->offset;
  r->n_all++;
}

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

static struct sender *open_sender(const struct kafka_property *own, size_t n)
{
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, false, own, n);
  struct sender *s;

  memset(&reports, 0, sizeof reports);
  assert_ok(sender_open(&layers, on_report, &reports, &s));
  return s;
}

static struct sender_message message_of(const char *topic, const char *key, const char *value, size_t i)
{
  return (struct sender_message){ .topic = topic,
                                  .has_key = key,
                                  .key = span_of_str(key ? key : ""),
                                  .has_value = value,
                                  .value = span_of_str(value ? value : ""),
                                  .opaque = (void *)(uintptr_t)(i + 1) };
}

static void each_message_is_reported_once_with_its_place_in_the_log(void **state)
{
  enum { N = 1000, PARTITIONS = 3 };
  struct sender *s = open_sender(NULL, 0);
  struct kafka_tap tap;
  char key[16], value[16];
  size_t n_partition[PARTITIONS] = { 0 };

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "reported", PARTITIONS));
  for (size_t i = 0; i < N; i++) {
    snprintf(key, sizeof key, "key%zu", i % 40);
    snprintf(value, sizeof value, "%zu", i);
    struct sender_message message = message_of("reported", key, value, i);
    assert_ok(sender_send(s, &message)); /* key and value are copied, so the buffers may change */
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  assert_int_equal(sender_n_waiting(s), 0);
  assert_int_equal(reports.n_all, N);
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(reports.n[i], 1);
    assert_int_equal(reports.fate[i], SENDER_DELIVERED);
    assert_false(reports.has_reason[i]);
    assert_in_range(reports.partition[i], 0, PARTITIONS - 1);
    n_partition[reports.partition[i]]++;
  }
  assert_true(n_partition[0] && n_partition[1] && n_partition[2]);
  kafka_tap_init(&tap, &kafka, "reported", PARTITIONS);
  for (size_t n = 0; n < N; n++) { /* the log has each message where its report said */
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    memcpy(value, m->payload, m->len);
    value[m->len] = '\0';
    size_t i = strtoul(value, NULL, 10);
    assert_int_equal(m->partition, reports.partition[i]);
    assert_int_equal(m->offset, reports.offset[i]);
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  sender_close(&s);
  assert_null(s);
  assert_int_equal(reports.n_all, N);
}

static void keys_values_and_headers_arrive_as_they_were_sent(void **state)
{
  struct sender *s = open_sender(NULL, 0);
  struct sender_header headers[] = { { "content-type", span_of_str("application/json") },
                                     { "binary", span_of("\0\xff\n", 3) },
                                     { "empty", span_of_str("") },
                                     { "twice", span_of_str("1") },
                                     { "twice", span_of_str("2") } };
  struct kafka_tap tap;
  char text[2048];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "whole", 1));
  struct sender_message rows[] = {
    message_of("whole", "k", "v", 0), message_of("whole", "k", NULL, 1), message_of("whole", "k", "", 2),
    message_of("whole", NULL, "v", 3), message_of("whole", "", "v", 4),
  };
  rows[0].headers = headers;
  rows[0].n_headers = sizeof headers / sizeof headers[0];
  for (size_t i = 0; i < 5; i++)
    assert_ok(sender_send(s, &rows[i]));
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  kafka_tap_init(&tap, &kafka, "whole", 1);
  for (size_t i = 0; i < 5; i++) {
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    assert_int_equal(m->key != NULL, rows[i].has_key);
    assert_int_equal(m->payload != NULL, rows[i].has_value); /* a tombstone is not an empty value */
    assert_true(span_equal(span_of(m->key, m->key_len), rows[i].key));
    assert_true(span_equal(span_of(m->payload, m->len), rows[i].value));
    if (i == 0) {
      assert_string_equal(kafka_tap_header(m, "content-type", text), "application/json");
      assert_string_equal(kafka_tap_header(m, "empty", text), "");
      assert_string_equal(kafka_tap_header(m, "twice", text), "2");
      kafka_tap_header(m, "binary", text);
      assert_memory_equal(text, "\0\xff\n", 4);
    }
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  sender_close(&s);
}

static void messages_of_one_key_arrive_in_the_order_in_which_they_were_sent(void **state)
{
  enum { N = 500 };
  struct sender *s = open_sender(NULL, 0);
  char value[16];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "ordered", 4));
  for (size_t i = 0; i < N; i++) {
    snprintf(value, sizeof value, "%zu", i);
    struct sender_message message = message_of("ordered", "same", value, i);
    assert_ok(sender_send(s, &message));
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(reports.partition[i], reports.partition[0]);
    assert_int_equal(reports.offset[i], i);
  }
  sender_close(&s);
}

static void a_full_queue_asks_to_be_repeated_and_reports_nothing(void **state)
{
  static const struct kafka_property own[] = { { "queue.buffering.max.messages", "5" }, { "linger.ms", "200" } };
  struct sender *s = open_sender(own, 2);
  size_t n_full = 0, i = 0;

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "full", 1));
  int64_t end_ns = kafka_deadline_ns();
  while (i < 23 && clock_now_ns() < end_ns) {
    struct sender_message message = message_of("full", "k", "v", i);
    err_code_t err = sender_send(s, &message);
    if (err == ERR_OK) {
      i++;
      continue;
    }
    assert_int_equal(err, ERR_KAFKA_RETRY);
    assert_int_equal(err_class(err), ERR_CLASS_RETRY);
    assert_non_null(strstr(err_message(), "full"));
    assert_true(sender_n_waiting(s) >= 1);
    n_full++;
    sender_poll(s, 50);
  }
  assert_int_equal(i, 23);
  assert_true(n_full >= 3);
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  assert_int_equal(reports.n_all, 23);
  for (i = 0; i < 23; i++) {
    assert_int_equal(reports.n[i], 1);
    assert_int_equal(reports.offset[i], i);
  }
  sender_close(&s);
}

static void a_message_that_can_never_be_sent_is_an_error_with_the_reason(void **state)
{
  struct sender *s = open_sender(NULL, 0);
  size_t n = 2 << 20;
  uint8_t *large = calloc(n, 1);
  struct sender_message message = message_of("large", "k", "", 0);
  struct sender_header header = { "h", span_of_str("v") };
  char long_name[600] = "";

  (void)state;
  message.value = span_of(large, n);
  message.headers = &header; /* the headers are not lost */
  message.n_headers = 1;
  assert_fails(sender_send(s, &message), ERR_KAFKA, "large");
  memset(long_name, 'x', sizeof long_name - 1);
  message = message_of(long_name, "k", "v", 0);
  assert_fails(sender_send(s, &message), ERR_KAFKA, "cannot be sent");
  assert_int_equal(sender_n_waiting(s), 0);
  sender_close(&s);
  assert_int_equal(reports.n_all, 0);
  free(large);
}

static void undelivered_messages_are_reported_as_closed_at_the_close(void **state)
{
  static const struct kafka_property own[] = { { "bootstrap.servers", "127.0.0.1:1" } };
  struct sender *s = open_sender(own, 1);

  (void)state;
  for (size_t i = 0; i < 20; i++) {
    struct sender_message message = message_of("nowhere", "k", "v", i);
    assert_ok(sender_send(s, &message));
  }
  sender_poll(s, 20);
  assert_fails(sender_flush(s, 50), ERR_KAFKA_RETRY, "20 messages");
  assert_int_equal(reports.n_all, 0);
  int64_t begin_ns = clock_now_ns();
  sender_close(&s);
  assert_true(clock_now_ns() - begin_ns < 4 * CLOCK_NS_PER_S);
  assert_int_equal(reports.n_all, 20);
  for (size_t i = 0; i < 20; i++) {
    assert_int_equal(reports.n[i], 1);
    assert_int_equal(reports.fate[i], SENDER_CLOSED);
    assert_true(reports.has_reason[i]);
    assert_string_equal(reports.value[i], "v");
  }
}

static enum sender_fate try_one(struct sender *s, const char *topic, size_t i)
{
  struct sender_message message = message_of(topic, "k", "v", i);
  const char *reason = NULL;
  enum sender_fate fate = sender_try(s, &message, &reason);

  assert_int_equal(reason != NULL, fate != SENDER_QUEUED);
  return fate;
}

static struct sender *open_stubborn(struct stubborn_broker *b, const struct kafka_property *own, size_t n)
{
  struct sender *s;

  stubborn_broker_init(b);
  struct kafka_layers layers = stubborn_broker_layers(b, false, own, n);
  memset(&reports, 0, sizeof reports);
  assert_ok(sender_open(&layers, on_report, &reports, &s));
  return s;
}

static void close_stubborn(struct stubborn_broker *b, struct sender **s)
{
  sender_close(s);
  stubborn_broker_fini(b);
}

static void wait_for_reports(struct sender *s, size_t n)
{
  int64_t end_ns = kafka_deadline_ns();

  while (reports.n_all < n && clock_now_ns() < end_ns)
    sender_poll(s, 50);
  assert_int_equal(reports.n_all, n);
}

static void a_report_tells_whether_the_message_is_wrong_or_its_topic_is_away(void **state)
{
  static const struct {
    rd_kafka_resp_err_t error;
    enum sender_fate fate;
  } rows[] = {
    { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, SENDER_TOO_LARGE },
    { RD_KAFKA_RESP_ERR_INVALID_RECORD, SENDER_REFUSED },
    { RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, SENDER_UNSURE },
    { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, SENDER_AWAY }, /* last: the topic then stays away */
  };
  struct stubborn_broker broker;
  struct sender *s = open_stubborn(&broker, NULL, 0);

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    stubborn_broker_refuse(&broker, rows[i].error, 1);
    assert_int_equal(try_one(s, "t", i), SENDER_QUEUED);
    wait_for_reports(s, i + 1);
    assert_int_equal(reports.fate[i], rows[i].fate);
    assert_string_equal(reports.value[i], "v");
  }
  assert_int_equal(try_one(s, "t", 9), SENDER_AWAY);
  close_stubborn(&broker, &s);
}

static void send_to_missing_topic(struct stubborn_broker *broker, struct sender *s)
{
  stubborn_broker_hide(broker, "missing", true);
  assert_int_equal(try_one(s, "missing", 0), SENDER_QUEUED);
  wait_for_reports(s, 1);
  assert_int_equal(reports.fate[0], SENDER_AWAY);
}

static void a_missing_topic_is_away_and_not_wrong(void **state)
{
  static const struct kafka_property own[] = { { "topic.metadata.propagation.max.ms", "0" } };
  struct stubborn_broker broker;
  struct sender *s = open_stubborn(&broker, own, 1);

  (void)state;
  send_to_missing_topic(&broker, s);
  assert_int_equal(try_one(s, "missing", 1), SENDER_AWAY);
  close_stubborn(&broker, &s);
}

/* The time limit of messages may end before librdkafka is sure that the topic is missing. */
static void a_timeout_tells_whether_the_topic_may_be_missing(void **state)
{
  static const struct kafka_property own[] = { { "message.timeout.ms", "1000" } };
  struct stubborn_broker broker;
  struct sender *s = open_stubborn(&broker, own, 1);

  (void)state;
  send_to_missing_topic(&broker, s);
  assert_non_null(strstr(reports.newest_reason, "Message timed out: "));
  assert_non_null(strstr(reports.newest_reason, "the topic does not exist"));
  assert_int_equal(rd_kafka_mock_topic_create(broker.cluster, "leaderless", 1, 1), 0);
  rd_kafka_mock_partition_set_leader(broker.cluster, "leaderless", 0, -1);
  sender_prepare(s, "leaderless", 10000);
  assert_int_equal(try_one(s, "leaderless", 1), SENDER_QUEUED);
  wait_for_reports(s, 2);
  assert_int_equal(reports.fate[1], SENDER_AWAY);
  assert_string_equal(reports.newest_reason, "Local: Message timed out");
  close_stubborn(&broker, &s);
}

/* Every later message fails as well, and its report must not blame the message. */
static void after_a_fatal_error_every_message_is_reported_as_fatal(void **state)
{
  static const struct kafka_property own[] = { { "enable.idempotence", "true" } };
  struct stubborn_broker broker;
  struct sender *s = open_stubborn(&broker, own, 1);

  (void)state;
  assert_int_equal(try_one(s, "t", 0), SENDER_QUEUED);
  wait_for_reports(s, 1);
  assert_int_equal(reports.fate[0], SENDER_DELIVERED);
  stubborn_broker_refuse(&broker, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1);
  assert_int_equal(try_one(s, "t", 1), SENDER_QUEUED);
  wait_for_reports(s, 2);
  assert_int_equal(reports.fate[1], SENDER_FATAL);
  assert_int_equal(try_one(s, "t", 2), SENDER_FATAL);
  close_stubborn(&broker, &s);
}

static void a_copy_of_a_message_has_all_that_the_message_has(void **state)
{
  char key[] = "key", value[] = "value", text[] = "text";
  struct sender_header headers[] = { { "first", span_of_str(text) }, { "empty", { 0 } } };
  struct sender_message message = message_of("topic", key, value, 7), *copy;

  (void)state;
  message.headers = headers;
  message.n_headers = 2;
  assert_ok(sender_message_copy(&message, &copy));
  memset(key, 'x', 3);
  memset(value, 'x', 5);
  memset(text, 'x', 4);
  assert_string_equal(copy->topic, "topic");
  assert_true(span_equal(copy->key, span_of_str("key")) && span_equal(copy->value, span_of_str("value")));
  assert_int_equal(copy->n_headers, 2);
  assert_string_equal(copy->headers[0].name, "first");
  assert_true(span_equal(copy->headers[0].value, span_of_str("text")));
  assert_string_equal(copy->headers[1].name, "empty");
  assert_int_equal(copy->headers[1].value.n, 0);
  assert_ptr_equal(copy->opaque, message.opaque);
  mem_free(&copy);
}

static void an_unknown_property_is_a_configuration_error(void **state)
{
  static const struct kafka_property wrong[] = { { "linger.ms", "soon" } };
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, false, wrong, 1);
  struct sender *s = NULL;

  (void)state;
  assert_fails(sender_open(&layers, NULL, NULL, &s), ERR_CONFIG, "linger.ms");
  assert_null(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_message_is_reported_once_with_its_place_in_the_log),
    cmocka_unit_test(keys_values_and_headers_arrive_as_they_were_sent),
    cmocka_unit_test(messages_of_one_key_arrive_in_the_order_in_which_they_were_sent),
    cmocka_unit_test(a_full_queue_asks_to_be_repeated_and_reports_nothing),
    cmocka_unit_test(a_message_that_can_never_be_sent_is_an_error_with_the_reason),
    cmocka_unit_test(undelivered_messages_are_reported_as_closed_at_the_close),
    cmocka_unit_test(a_report_tells_whether_the_message_is_wrong_or_its_topic_is_away),
    cmocka_unit_test(a_missing_topic_is_away_and_not_wrong),
    cmocka_unit_test(a_timeout_tells_whether_the_topic_may_be_missing),
    cmocka_unit_test(after_a_fatal_error_every_message_is_reported_as_fatal),
    cmocka_unit_test(a_copy_of_a_message_has_all_that_the_message_has),
    cmocka_unit_test(an_unknown_property_is_a_configuration_error),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
