/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of a whole topic, on the embedded broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "base/mem.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/side_by_side.h"

enum { MAX_RECORDS = 4096, MAX_PARTITIONS = 4 };

static struct kafka_fixture kafka;
static struct sender *sender;

/* Copies of the records that a reader returned, in order. */
struct seen {
  struct {
    int32_t partition;
    int64_t offset;
    char key[32], value[32], content_type[32];
    bool has_key, has_value;
    int64_t timestamp_ms;
  } records[MAX_RECORDS];
  size_t n;
  int64_t ends[MAX_PARTITIONS]; /* newest end of each partition; -1: none yet */
  bool is_out_of_range, is_away;
  int32_t out_of_range_partition;
};

static struct seen seen;
static struct topic_record records[MAX_RECORDS];

static void forget(void)
{
  memset(&seen, 0, sizeof seen);
  for (size_t i = 0; i < MAX_PARTITIONS; i++)
    seen.ends[i] = -1;
}

static int open_broker(void **state)
{
  (void)state;
  kafka_fixture_init(&kafka);
  struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  assert_ok(sender_open(&layers, NULL, NULL, &sender));
  return 0;
}

static int close_broker(void **state)
{
  (void)state;
  sender_close(&sender);
  kafka_fixture_fini(&kafka);
  return 0;
}

static struct topic_reader *open_reader(const char *topic)
{
  struct kafka_layers layers = kafka_fixture_layers(&kafka, true);
  struct topic_reader *r;

  assert_ok(topic_reader_open(&layers, topic, &r));
  return r;
}

static void produce(const char *topic, const char *key, const char *value)
{
  struct sender_message message = {
    .topic = topic,
    .has_key = key,
    .key = span_of_str(key ? key : ""),
    .has_value = value,
    .value = span_of_str(value ? value : ""),
  };

  assert_ok(sender_send(sender, &message));
}

static void copy_text(struct span from, char *to)
{
  assert_true(from.n < 32);
  memcpy(to, from.p ? (const char *)from.p : "", from.n);
  to[from.n] = '\0';
}

static void keep(const struct topic_record *record)
{
  if (record->is_end) {
    assert_true(record->offset >= seen.ends[record->partition]);
    seen.ends[record->partition] = record->offset;
    return;
  }
  assert_true(seen.n < MAX_RECORDS);
  seen.records[seen.n].partition = record->partition;
  seen.records[seen.n].offset = record->offset;
  seen.records[seen.n].has_key = record->has_key;
  seen.records[seen.n].has_value = record->has_value;
  seen.records[seen.n].timestamp_ms = record->timestamp_ms;
  copy_text(record->key, seen.records[seen.n].key);
  copy_text(record->value, seen.records[seen.n].value);
  copy_text(record->content_type, seen.records[seen.n++].content_type);
}

static size_t poll_once(struct topic_reader *r, size_t max, int timeout_ms)
{
  struct topic_events events;
  size_t n;

  topic_reader_poll(r, max, timeout_ms, records, &n, &events);
  assert_true(n <= max);
  for (size_t i = 0; i < n; i++)
    keep(&records[i]);
  seen.is_away |= events.is_away;
  if (events.is_out_of_range) {
    seen.is_out_of_range = true;
    seen.out_of_range_partition = events.out_of_range_partition;
  }
  return n;
}

/* Poll until partition 0 is read to this end. */
static void read_to_end(struct topic_reader *r, int64_t end)
{
  int64_t deadline_ns = kafka_deadline_ns();

  while (seen.ends[0] < end && clock_now_ns() < deadline_ns) {
    poll_once(r, 100, 100);
    topic_reader_release_all(r);
  }
  assert_int_equal(seen.ends[0], end);
}

static void the_broker_tells_bounds_partitions_and_cluster(void **state)
{
  struct topic_reader *r = open_reader("bounds");
  char *cluster_id = NULL;
  int64_t first, end;
  int n;

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "bounds", 1));
  produce("bounds", "a", "1");
  produce("bounds", "b", "2");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_cluster_id(r, KAFKA_TIMEOUT_MS, &cluster_id));
  assert_non_null(cluster_id);
  assert_ok(topic_reader_n_partitions(r, KAFKA_TIMEOUT_MS, &n));
  assert_int_equal(n, 1);
  assert_ok(topic_reader_bounds(r, 0, KAFKA_TIMEOUT_MS, &first, &end));
  assert_int_equal(first, 0);
  assert_int_equal(end, 2);
  mem_free(&cluster_id);
  topic_reader_close(&r);
  assert_null(r);
}

static void records_come_in_order_with_all_that_they_have(void **state)
{
  struct topic_reader *r = open_reader("order");
  struct sender_header header = { "content-type", span_of_str("application/json") };
  struct sender_message typed = { .topic = "order",
                                  .has_key = true,
                                  .key = span_of_str("typed"),
                                  .has_value = true,
                                  .value = span_of_str("{}"),
                                  .headers = &header,
                                  .n_headers = 1 };

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "order", 1));
  int64_t begin_ms = clock_unix_ms();
  produce("order", "a", "value");
  produce("order", "a", NULL); /* a tombstone */
  produce("order", "a", "");   /* a value that is empty */
  produce("order", NULL, "v");
  produce("order", "", "v");
  assert_ok(sender_send(sender, &typed));
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_assign(r, 0, 0));
  read_to_end(r, 6);
  assert_int_equal(seen.n, 6);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(seen.records[i].offset, i);
    assert_in_range(seen.records[i].timestamp_ms, begin_ms, clock_unix_ms());
    assert_string_equal(seen.records[i].content_type, i == 5 ? "application/json" : "");
  }
  assert_string_equal(seen.records[0].value, "value");
  assert_true(seen.records[0].has_key && seen.records[0].has_value);
  assert_true(seen.records[1].has_key && !seen.records[1].has_value);
  assert_true(seen.records[2].has_key && seen.records[2].has_value);
  assert_false(seen.records[3].has_key);
  assert_true(seen.records[4].has_key);
  topic_reader_close(&r);
}

static void reading_begins_at_the_offset_asked_for(void **state)
{
  struct topic_reader *r = open_reader("middle");
  char key[8];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "middle", 1));
  for (int i = 0; i < 20; i++)
    produce("middle", (snprintf(key, sizeof key, "k%d", i), key), "v");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  for (int64_t from = 20; from >= 0; from -= 5) {
    forget();
    assert_ok(topic_reader_assign(r, 0, from));
    read_to_end(r, 20);
    assert_int_equal(seen.n, 20 - from);
    for (size_t i = 0; i < seen.n; i++)
      assert_int_equal(seen.records[i].offset, from + (int64_t)i);
    topic_reader_unassign(r);
  }
  topic_reader_close(&r);
}

static void no_poll_returns_more_than_max_records(void **state)
{
  struct topic_reader *r = open_reader("max");
  size_t rounds = 0;

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "max", 1));
  for (int i = 0; i < 1500; i++)
    produce("max", "k", "v");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_assign(r, 0, 0));
  int64_t deadline_ns = kafka_deadline_ns();
  while (seen.n < 1500 && clock_now_ns() < deadline_ns)
    rounds += poll_once(r, 1 + rounds % 700, 100) > 0; /* records of many polls are valid until one release */
  assert_int_equal(seen.n, 1500);
  for (size_t i = 0; i < 1500; i++)
    assert_int_equal(seen.records[i].offset, i);
  topic_reader_release_all(r);
  topic_reader_release_all(r);
  topic_reader_close(&r);
}

/* This holds even if one poll returns both. So a caller that handles them in order loses nothing. */
static void an_end_comes_after_the_records_below_it(void **state)
{
  struct topic_reader *r = open_reader("ends");
  int64_t deadline_ns = kafka_deadline_ns();

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "ends", 1));
  assert_ok(topic_reader_assign(r, 0, 0));
  read_to_end(r, 0); /* the end of an empty partition */
  for (int round = 1; round <= 5; round++) {
    for (int i = 0; i < 10; i++)
      produce("ends", "k", "v");
    assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
    clock_sleep_ns(100 * CLOCK_NS_PER_MS); /* now both the records and the end are waiting */
    while (seen.ends[0] < 10 * round && clock_now_ns() < deadline_ns) {
      struct topic_events events;
      size_t n;
      topic_reader_poll(r, 1 + (size_t)round * 5, 100, records, &n, &events);
      for (size_t i = 0; i < n; i++) {
        keep(&records[i]);
        if (records[i].is_end)
          assert_int_equal(records[i].offset, seen.n);
      }
      topic_reader_release_all(r);
    }
    assert_int_equal(seen.ends[0], 10 * round);
    assert_int_equal(seen.n, 10 * round);
  }
  topic_reader_close(&r);
}

static void an_offset_outside_the_log_is_an_event(void **state)
{
  struct topic_reader *r = open_reader("range");
  int64_t deadline_ns = kafka_deadline_ns();

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "range", 1));
  produce("range", "k", "v");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_assign(r, 0, 1000));
  while (!seen.is_out_of_range && clock_now_ns() < deadline_ns)
    poll_once(r, 10, 100);
  assert_true(seen.is_out_of_range);
  assert_int_equal(seen.out_of_range_partition, 0);
  assert_int_equal(seen.n, 0); /* no silent jump to either end */
  topic_reader_unassign(r);
  forget();
  assert_ok(topic_reader_assign(r, 0, 0)); /* it continues where it is assigned */
  read_to_end(r, 1);
  assert_int_equal(seen.n, 1);
  topic_reader_close(&r);
}

static void brokers_that_go_away_are_an_event(void **state)
{
  struct topic_reader *r = open_reader("away");
  int64_t deadline_ns = kafka_deadline_ns();

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "away", 1));
  produce("away", "k", "v");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  assert_ok(topic_reader_assign(r, 0, 0));
  read_to_end(r, 1);
  assert_false(seen.is_away);
  assert_int_equal(topic_reader_log_end(r, 0), 1);
  embedded_broker_set_down(kafka.broker, true);
  while (!seen.is_away && clock_now_ns() < deadline_ns)
    poll_once(r, 10, 100);
  embedded_broker_set_down(kafka.broker, false);
  assert_true(seen.is_away);
  topic_reader_close(&r);
}

static void partitions_are_read_each_from_its_own_offset(void **state)
{
  struct topic_reader *r = open_reader("several");
  int64_t firsts[3], ends[3], deadline_ns = kafka_deadline_ns();
  size_t n_want = 0;
  char key[16];

  (void)state;
  forget();
  assert_ok(embedded_broker_create_topic(kafka.broker, "several", 3));
  for (int i = 0; i < 300; i++)
    produce("several", (snprintf(key, sizeof key, "key%d", i), key), "v");
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  for (int32_t p = 0; p < 3; p++) {
    assert_ok(topic_reader_bounds(r, p, KAFKA_TIMEOUT_MS, &firsts[p], &ends[p]));
    assert_true(ends[p] > 20);
    assert_ok(topic_reader_assign(r, p, p * 5));
    n_want += (size_t)(ends[p] - p * 5);
  }
  while ((seen.ends[0] < ends[0] || seen.ends[1] < ends[1] || seen.ends[2] < ends[2]) && clock_now_ns() < deadline_ns) {
    poll_once(r, 50, 100);
    topic_reader_release_all(r);
  }
  int64_t next[3] = { 0, 5, 10 };
  for (size_t i = 0; i < seen.n; i++)
    assert_int_equal(seen.records[i].offset, next[seen.records[i].partition]++);
  assert_int_equal(seen.n, n_want);
  topic_reader_close(&r);
}

static void a_commit_waits_until_the_last_one_is_answered(void **state)
{
  struct topic_reader *r = open_reader("committed");
  int64_t deadline_ns = clock_now_ns() + KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;
  struct position at = { .partition = 0, .next = 1 };

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "committed", 1));
  assert_true(topic_reader_commit(r, &at, 1));
  at.next = 2;
  assert_false(topic_reader_commit(r, &at, 1));
  while (!topic_reader_commit(r, &at, 1)) {
    assert_true(clock_now_ns() < deadline_ns);
    poll_once(r, 10, 50);
  }
  topic_reader_close(&r);
}

static void a_digest_tells_key_value_and_tombstone_apart(void **state)
{
  struct topic_record rows[] = {
    { .has_key = true, .key = span_of_str("a"), .has_value = true, .value = span_of_str("b") },
    { .has_key = true, .key = span_of_str("a"), .has_value = true, .value = span_of_str("c") },
    { .has_key = true, .key = span_of_str("b"), .has_value = true, .value = span_of_str("b") },
    { .has_key = true, .key = span_of_str("ab"), .has_value = true, .value = span_of_str("") },
    { .has_key = true, .key = span_of_str("a"), .has_value = true, .value = span_of_str("") },
    { .has_key = true, .key = span_of_str("a") },
    { .has_key = true, .key = span_of_str("b") },
  };
  size_t n = sizeof rows / sizeof rows[0];

  (void)state;
  for (size_t i = 0; i < n; i++) {
    struct topic_record other = rows[i];
    other.offset = 99; /* the digest does not depend on the offset */
    other.timestamp_ms = 5;
    assert_true(topic_record_digest(&rows[i]) == topic_record_digest(&other));
    for (size_t j = 0; j < i; j++)
      assert_true(topic_record_digest(&rows[i]) != topic_record_digest(&rows[j]));
  }
}

static void without_a_broker_calls_ask_to_be_repeated(void **state)
{
  struct kafka_property nowhere = { "bootstrap.servers", "127.0.0.1:1" };
  struct kafka_layers layers = { .layer = { { &nowhere, 1 } }, .n = 1 };
  struct topic_reader *r;
  char *cluster_id;
  int64_t first, end;
  int n;

  (void)state;
  assert_ok(topic_reader_open(&layers, "t", &r));
  assert_int_equal(topic_reader_cluster_id(r, 50, &cluster_id), ERR_KAFKA_RETRY);
  assert_int_equal(topic_reader_n_partitions(r, 50, &n), ERR_KAFKA_RETRY);
  assert_int_equal(topic_reader_bounds(r, 0, 50, &first, &end), ERR_KAFKA_RETRY);
  topic_reader_close(&r);
}

/* The other broker still names it as the leader. */
static void a_leader_that_is_away_is_not_waited_for(void **state)
{
  char reason[512];
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), reason, sizeof reason);
  rd_kafka_mock_cluster_t *cluster = rk ? rd_kafka_mock_cluster_new(rk, 2) : NULL;
  struct topic_reader *r;
  int64_t first = -1, end = -1;

  (void)state;
  assert_non_null(cluster);
  assert_false(rd_kafka_mock_topic_create(cluster, "t", 1, 1));
  assert_false(rd_kafka_mock_partition_set_leader(cluster, "t", 0, 2));
  struct kafka_property brokers = { "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster) };
  struct kafka_layers layers = { .layer = { { &brokers, 1 } }, .n = 1 };
  assert_ok(topic_reader_open(&layers, "t", &r));
  assert_ok(topic_reader_bounds(r, 0, KAFKA_TIMEOUT_MS, &first, &end));
  assert_true(first == 0 && end == 0);
  rd_kafka_mock_broker_set_down(cluster, 2);
  assert_fails(topic_reader_bounds(r, 0, 200, &first, &end), ERR_KAFKA_RETRY, "the bounds of topic t, partition 0");
  rd_kafka_mock_broker_set_up(cluster, 2);
  topic_reader_close(&r);
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(rk);
}

static void an_unknown_property_is_a_configuration_error(void **state)
{
  struct kafka_property wrong = { "no.such.property", "1" };
  struct kafka_layers layers = { .layer = { { &wrong, 1 } }, .n = 1 };
  struct topic_reader *r = NULL;

  (void)state;
  assert_fails(topic_reader_open(&layers, "t", &r), ERR_CONFIG, "no.such.property");
  assert_null(r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_broker_tells_bounds_partitions_and_cluster),
    cmocka_unit_test(records_come_in_order_with_all_that_they_have),
    cmocka_unit_test(reading_begins_at_the_offset_asked_for),
    cmocka_unit_test(no_poll_returns_more_than_max_records),
    cmocka_unit_test(an_end_comes_after_the_records_below_it),
    cmocka_unit_test(an_offset_outside_the_log_is_an_event),
    cmocka_unit_test(brokers_that_go_away_are_an_event),
    cmocka_unit_test(partitions_are_read_each_from_its_own_offset),
    cmocka_unit_test(a_commit_waits_until_the_last_one_is_answered),
    cmocka_unit_test(a_digest_tells_key_value_and_tombstone_apart),
    cmocka_unit_test(without_a_broker_calls_ask_to_be_repeated),
    cmocka_unit_test(a_leader_that_is_away_is_not_waited_for),
    cmocka_unit_test(an_unknown_property_is_a_configuration_error),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
