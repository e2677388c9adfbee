/* SPDX-License-Identifier: Apache-2.0 */
/* Topics and scans of them, on the embedded broker. It knows no CreateTopics request; it creates a topic when a
 * producer asks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ingest/kafka/embedded_broker.h"
#include "ingest/kafka/sender.h"
#include "ingest/kafka/topics.h"
#include "ingest/readers/topic_scan.h"

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

static const struct topic_scan_range from_now_on = { .follows = true };

static void a_missing_broker_is_an_error_within_the_timeout(void **state)
{
  struct kafka_property nowhere[] = { { "bootstrap.servers", "127.0.0.1:9" } };
  struct kafka_layers away = { .layer = { { nowhere, 1 } }, .n = 1 };
  struct topic_scan *scan = NULL;
  bool is_created;
  int n;

  (void)state;
  assert_int_equal(topics_create(&away, "x", 1, &no_settings, 300, &is_created), ERR_KAFKA_RETRY);
  assert_int_equal(topics_count_partitions(&away, "x", 300, &n), ERR_KAFKA_RETRY);
  assert_int_equal(topic_scan_open(&away, "x", &from_now_on, 300, &scan), ERR_KAFKA_RETRY);
  assert_null(scan);
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
    struct sender_message message = {
      .topic = topic, .has_key = true, .key = span_of_str(value), .has_value = true, .value = span_of_str(value)
    };
    assert_ok(sender_send(sender, &message));
  }
  assert_ok(sender_flush(sender, TIMEOUT_MS));
  sender_close(&sender);
}

static void a_followed_topic_is_read_once_from_where_the_topic_ended(void **state)
{
  struct topic_scan *scan = NULL;
  struct topic_scan_record record;
  enum topic_scan_found found;
  bool has_come[N_ANSWERS] = { false };
  char text[16];

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "answers", 3));
  send_numbers("answers", 0, N_ANSWERS / 2);
  assert_ok(topic_scan_open(&layers, "answers", &from_now_on, TIMEOUT_MS, &scan));
  send_numbers("answers", N_ANSWERS / 2, N_ANSWERS);
  for (int i = N_ANSWERS / 2; i < N_ANSWERS; i++) {
    assert_ok(topic_scan_next(scan, TIMEOUT_MS, &record, &found));
    assert_int_equal(found, TOPIC_SCAN_RECORD);
    assert_in_range(record.value.n, 1, sizeof text - 1);
    memcpy(text, record.value.p, record.value.n);
    text[record.value.n] = '\0';
    int number = atoi(text);
    assert_in_range(number, N_ANSWERS / 2, N_ANSWERS - 1);
    assert_false(has_come[number]);
    has_come[number] = true;
  }
  int64_t started_ns = clock_now_ns();
  assert_ok(topic_scan_next(scan, 200, &record, &found));
  assert_int_equal(found, TOPIC_SCAN_NOTHING);
  assert_in_range(clock_now_ns() - started_ns, 150 * CLOCK_NS_PER_MS, 5 * CLOCK_NS_PER_S);
  topic_scan_close(&scan);
  assert_null(scan);
}

/* Scan a topic, and return how often each number came, as records of TOPIC_SCAN_RECORD. */
static int scan_numbers(const char *topic, const struct topic_scan_range *range, int *times, int n)
{
  AUTO(topic_scan_close) struct topic_scan *scan = NULL;
  struct topic_scan_record record;
  enum topic_scan_found found = TOPIC_SCAN_NOTHING;
  int64_t until_ns = clock_now_ns() + 4 * TIMEOUT_MS * CLOCK_NS_PER_MS;
  int n_records = 0;
  char text[16];

  memset(times, 0, (size_t)n * sizeof *times);
  assert_ok(topic_scan_open(&layers, topic, range, TIMEOUT_MS, &scan));
  while (found != TOPIC_SCAN_END) {
    assert_true(clock_now_ns() < until_ns);
    assert_ok(topic_scan_next(scan, 100, &record, &found));
    if (found != TOPIC_SCAN_RECORD)
      continue;
    assert_true(span_equal(record.key, record.value));
    snprintf(text, sizeof text, "%.*s", (int)record.value.n, (const char *)record.value.p);
    assert_in_range(atoi(text), 0, n - 1);
    times[atoi(text)]++;
    n_records++;
  }
  return n_records;
}

static void a_scan_ends_where_the_topic_ended(void **state)
{
  enum { N = 30 };
  int times[2 * N];
  const struct topic_scan_range all = { .newest = TOPIC_SCAN_FROM_FIRST }, two = { .newest = 2 }, none = { 0 };
  const struct topic_scan_range late = { .newest = TOPIC_SCAN_FROM_FIRST, .since_unix_ms = INT64_C(4000000000000) };
  const struct topic_scan_range one = { .has_place = true, .partition = 1, .offset = 0 };
  const struct topic_scan_range beyond = { .has_place = true, .partition = 1, .offset = 1000 };

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "scanned", 3));
  assert_int_equal(scan_numbers("scanned", &all, times, 2 * N), 0);
  send_numbers("scanned", 0, N);
  assert_int_equal(scan_numbers("scanned", &all, times, 2 * N), N);
  for (int i = 0; i < N; i++)
    assert_int_equal(times[i], 1);
  assert_int_equal(scan_numbers("scanned", &two, times, 2 * N), 6);
  assert_int_equal(scan_numbers("scanned", &none, times, 2 * N), 0);
  assert_int_equal(scan_numbers("scanned", &late, times, 2 * N), 0);
  assert_int_equal(scan_numbers("scanned", &one, times, 2 * N), 1);
  assert_int_equal(scan_numbers("scanned", &beyond, times, 2 * N), 0);
}

/* Write number 0 to partition 0, with a time; -1: as producers do that know none. */
static void send_at(const char *topic, int64_t timestamp_ms)
{
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  char why[256];

  assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", embedded_broker_bootstrap(broker), why, sizeof why), 0);
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  assert_non_null(rk);
  assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("0", 1),
                                     RD_KAFKA_V_VALUE("0", 1), RD_KAFKA_V_TIMESTAMP(timestamp_ms), RD_KAFKA_V_END),
                   0);
  assert_int_equal(rd_kafka_flush(rk, TIMEOUT_MS), 0);
  rd_kafka_destroy(rk);
}

static void records_without_a_time_are_left_out_only_if_a_time_is_asked_for(void **state)
{
  const struct topic_scan_range all = { .newest = TOPIC_SCAN_FROM_FIRST };
  const struct topic_scan_range since = { .newest = TOPIC_SCAN_FROM_FIRST, .since_unix_ms = 1000 };
  int times[1];

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "timeless", 1));
  send_at("timeless", -1);
  send_at("timeless", 999);
  send_at("timeless", 1000);
  assert_int_equal(scan_numbers("timeless", &all, times, 1), 3);
  assert_int_equal(scan_numbers("timeless", &since, times, 1), 1);
}

static void a_partition_that_is_not_there_is_an_error(void **state)
{
  const struct topic_scan_range range = { .has_place = true, .partition = 3 };
  struct topic_scan *scan = NULL;

  (void)state;
  assert_int_equal(topic_scan_open(&layers, "scanned", &range, TIMEOUT_MS, &scan), ERR_KAFKA_TOPIC);
  assert_null(scan);
}

static void a_scan_of_nothing_tells_the_ends(void **state)
{
  AUTO(topic_scan_close) struct topic_scan *scan = NULL;
  const struct topic_scan_range nothing = { .newest = 0 };
  int64_t sum = 0;

  (void)state;
  assert_ok(embedded_broker_create_topic(broker, "ends", 3));
  send_numbers("ends", 0, 50);
  assert_ok(topic_scan_open(&layers, "ends", &nothing, TIMEOUT_MS, &scan));
  send_numbers("ends", 50, 60);
  assert_int_equal(topic_scan_n_partitions(scan), 3);
  for (int32_t i = 0; i < 3; i++)
    sum += topic_scan_end(scan, i);
  assert_int_equal(sum, 50);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_topic_is_created_once),
    cmocka_unit_test(partitions_are_counted),
    cmocka_unit_test(a_missing_broker_is_an_error_within_the_timeout),
    cmocka_unit_test(a_wrong_property_is_an_error),
    cmocka_unit_test(a_followed_topic_is_read_once_from_where_the_topic_ended),
    cmocka_unit_test(a_scan_ends_where_the_topic_ended),
    cmocka_unit_test(records_without_a_time_are_left_out_only_if_a_time_is_asked_for),
    cmocka_unit_test(a_partition_that_is_not_there_is_an_error),
    cmocka_unit_test(a_scan_of_nothing_tells_the_ends),
  };

  return cmocka_run_group_tests(tests, open_broker, close_broker);
}
