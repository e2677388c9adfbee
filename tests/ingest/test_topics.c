/* SPDX-License-Identifier: Apache-2.0 */
/* Topics and the answer reader, on the embedded broker. It knows no CreateTopics request; it creates a topic when a
 * producer asks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ingest/answer_reader.h"
#include "ingest/embedded_broker.h"
#include "ingest/sender.h"
#include "ingest/topics.h"

enum { TIMEOUT_MS = 10000, N_ANSWERS = 200 };

static struct embedded_broker *broker;
static struct kafka_property properties[2];
static struct kafka_layers layers;
static const struct kafka_properties no_settings;

static int open_broker(void **state)
{
  (void)state;
  if (embedded_broker_open(&broker) != ERR_OK)
    return -1;
  properties[0] = (struct kafka_property){ "bootstrap.servers", embedded_broker_bootstrap(broker) };
  properties[1] = (struct kafka_property){ "fetch.wait.max.ms", "1" };
  layers = (struct kafka_layers){ .layer = { { properties, 2 } }, .n = 1 };
  return 0;
}

static int close_broker(void **state)
{
  (void)state;
  embedded_broker_close(&broker);
  return 0;
}

static void assert_ok(err_code_t result)
{
  if (result != ERR_OK)
    fail_msg("%s (%s)", err_message(), err_origin());
}

static void a_topic_is_created_once(void **state)
{
  static const struct kafka_property compacted[] = { { "cleanup.policy", "compact" } };
  const struct kafka_properties settings = { compacted, 1 };
  bool is_created = false;
  int n = 0;

  (void)state;
  int64_t started_ns = clock_now_ns();
  assert_ok(topics_create(&layers, "new", 4, &no_settings, TIMEOUT_MS, &is_created));
  assert_true(is_created);
  assert_ok(topics_create(&layers, "new", 4, &no_settings, TIMEOUT_MS, &is_created));
  assert_false(is_created);
  assert_ok(topics_create(&layers, "compacted", 4, &settings, TIMEOUT_MS, &is_created));
  assert_true(is_created);
  assert_true(clock_now_ns() - started_ns < TIMEOUT_MS * CLOCK_NS_PER_MS); /* it did not wait for a timeout */
  assert_ok(topics_count_partitions(&layers, "new", TIMEOUT_MS, &n));
  assert_int_equal(n, 4);
}

static void partitions_are_counted(void **state)
{
  bool is_created = true;
  int n = 0;

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "seven", 7));
  assert_ok(topics_count_partitions(&layers, "seven", TIMEOUT_MS, &n));
  assert_int_equal(n, 7);
  assert_ok(topics_create(&layers, "seven", 3, &no_settings, TIMEOUT_MS, &is_created));
  assert_false(is_created);
}

static void a_missing_broker_is_an_error_within_the_timeout(void **state)
{
  struct kafka_property nowhere[] = { { "bootstrap.servers", "127.0.0.1:9" } };
  struct kafka_layers away = { .layer = { { nowhere, 1 } }, .n = 1 };
  struct answer_reader *reader = NULL;
  bool is_created;
  int n;

  (void)state;
  assert_int_equal(topics_create(&away, "x", 1, &no_settings, 300, &is_created), ERR_KAFKA_RETRY);
  assert_int_equal(topics_count_partitions(&away, "x", 300, &n), ERR_KAFKA_RETRY);
  assert_int_equal(answer_reader_open(&away, "x", 300, &reader), ERR_KAFKA_RETRY);
  assert_null(reader);
}

static void a_wrong_property_is_an_error(void **state)
{
  struct kafka_property wrong[] = { { "linger.mss", "1" } };
  struct kafka_layers bad = { .layer = { { wrong, 1 } }, .n = 1 };
  bool is_created;

  (void)state;
  assert_int_equal(topics_create(&bad, "x", 1, &no_settings, 300, &is_created), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "linger.mss"));
}

static void send_numbers(const char *topic, int from, int to)
{
  struct sender *sender = NULL;
  char value[16];

  assert_ok(sender_open(&layers, NULL, NULL, &sender));
  for (int i = from; i < to; i++) {
    snprintf(value, sizeof value, "%d", i);
    struct sender_message message = { .topic = topic, .has_key = true, .key = span_of_str(value), .has_value = true,
                                      .value = span_of_str(value) };
    assert_ok(sender_send(sender, &message));
  }
  assert_ok(sender_flush(sender, TIMEOUT_MS));
  sender_close(&sender);
}

static void answers_are_read_once_from_where_the_topic_ended(void **state)
{
  struct answer_reader *reader = NULL;
  bool has_come[N_ANSWERS] = { false };
  struct span value;
  char text[16];

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "answers", 3));
  send_numbers("answers", 0, N_ANSWERS / 2);
  assert_ok(answer_reader_open(&layers, "answers", TIMEOUT_MS, &reader));
  send_numbers("answers", N_ANSWERS / 2, N_ANSWERS);
  for (int i = N_ANSWERS / 2; i < N_ANSWERS; i++) {
    assert_ok(answer_reader_next(reader, TIMEOUT_MS, &value));
    assert_in_range(value.n, 1, sizeof text - 1);
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    int number = atoi(text);
    assert_in_range(number, N_ANSWERS / 2, N_ANSWERS - 1);
    assert_false(has_come[number]);
    has_come[number] = true;
  }
  int64_t started_ns = clock_now_ns();
  assert_ok(answer_reader_next(reader, 200, &value));
  assert_int_equal(value.n, 0);
  assert_in_range(clock_now_ns() - started_ns, 150 * CLOCK_NS_PER_MS, 5 * CLOCK_NS_PER_S);
  answer_reader_close(&reader);
  assert_null(reader);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_topic_is_created_once),
    cmocka_unit_test(partitions_are_counted),
    cmocka_unit_test(a_missing_broker_is_an_error_within_the_timeout),
    cmocka_unit_test(a_wrong_property_is_an_error),
    cmocka_unit_test(answers_are_read_once_from_where_the_topic_ended),
  };

  return cmocka_run_group_tests(tests, open_broker, close_broker);
}
