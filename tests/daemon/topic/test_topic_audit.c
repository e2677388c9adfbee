/* SPDX-License-Identifier: Apache-2.0 */
/* Audits of a topic on an embedded broker: what they confirm, and what shows that the topic is another one. A position
 * with another digest stands for a topic that was replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/topic/followed_topic.h"
#include "daemon/topic/topic_audit.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/side_by_side.h"
#include "tests/support/tls_property.h"

enum { PARTITIONS = 2, HOUR_S = 3600 };

static struct kafka_fixture kafka;
static struct sender *sender;
static struct followed_topic topic;
static struct topic_audit audit;

static int open_broker(void **state)
{
  (void)state;
  kafka_fixture_init(&kafka);
  const struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
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

static int end_audit(void **state)
{
  (void)state;
  topic_audit_fini(&audit);
  followed_topic_fini(&topic);
  return 0;
}

/* Write n records of so many bytes to partition 0. Partition 1 stays empty. */
static void produce(size_t n, size_t n_bytes)
{
  static uint8_t bytes[1 << 20];
  const struct sender_message message = {
    .topic = topic.name, .has_partition = true, .has_value = true, .value = { bytes, n_bytes }
  };

  assert_true(n_bytes <= sizeof bytes);
  for (size_t i = 0; i < n; i++)
    assert_ok(sender_send(sender, &message));
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
}

/* Read partition 0 up to an offset. */
static void read_to(int64_t next)
{
  const struct store_position *p = &topic.positions.items[0].position;
  int64_t end_ns = kafka_deadline_ns();

  while (p->at.next < next && clock_now_ns() < end_ns) {
    struct topic_record record;
    struct topic_events events;
    size_t n;
    bool is_new;
    topic_reader_poll(topic.reader, 1, 100, &record, &n, &events);
    if (n > 0)
      assert_ok(followed_topic_take(&topic, &record, &is_new));
    topic_reader_release_all(topic.reader);
  }
  assert_int_equal(p->at.next, next);
  assert_int_equal(p->last_offset, next - 1);
}

static void follow(int32_t partition)
{
  int64_t from;

  assert_ok(followed_topic_add(&topic, NULL, KAFKA_TIMEOUT_MS, &from));
  assert_ok(topic_reader_assign(topic.reader, partition, from));
}

/* Open a new topic, write n records and read them. */
static void open_topic(const char *name, size_t n)
{
  const struct kafka_layers layers = kafka_fixture_layers_with(&kafka, true, tls_property, 1);

  assert_ok(embedded_broker_create_topic(kafka.broker, name, PARTITIONS));
  assert_ok(followed_topic_init(&layers, name, &topic));
  topic_audit_init(&layers, name, HOUR_S * CLOCK_NS_PER_S, &audit);
  produce(n, 10);
  follow(0);
  topic.positions.has_holes = false;
  read_to((int64_t)n);
}

static struct store_position *position(void)
{
  return &topic.positions.items[0].position;
}

/* Take steps until an audit that was requested now has found no difference. Returns the error that ends it earlier. */
static err_code_t confirm(void)
{
  int64_t end_ns = kafka_deadline_ns();
  err_code_t err = ERR_OK;

  while (err == ERR_OK && !topic_audit_confirms(&audit)) {
    assert_true(clock_now_ns() < end_ns);
    err = topic_audit_step(&audit, &topic.positions);
    clock_sleep_ns(CLOCK_NS_PER_MS);
  }
  return err;
}

static err_code_t begin_and_confirm(void)
{
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  return confirm();
}

static void the_same_topic_is_confirmed_each_time(void **state)
{
  (void)state;
  open_topic("same", 3);
  follow(1);
  assert_ok(begin_and_confirm());
  produce(2, 10);
  read_to(5);
  for (int i = 0; i < 3; i++)
    assert_ok(confirm());
}

static void another_record_at_the_first_offset_is_a_discontinuity(void **state)
{
  (void)state;
  open_topic("digest", 1);
  position()->last_digest++;
  assert_int_equal(begin_and_confirm(), ERR_DISCONTINUITY);
}

/* Compaction may have removed the record, but it never makes a log end earlier. */
static void a_topic_that_ends_before_the_record_is_a_discontinuity(void **state)
{
  (void)state;
  open_topic("gone", 3);
  position()->last_offset = 3;
  topic.positions.has_holes = true;
  assert_int_equal(begin_and_confirm(), ERR_DISCONTINUITY);
  topic.positions.has_holes = false;
  assert_int_equal(begin_and_confirm(), ERR_DISCONTINUITY);
}

static void a_shorter_topic_is_a_discontinuity(void **state)
{
  (void)state;
  open_topic("shorter", 3);
  position()->last_offset = 7;
  topic.positions.has_holes = true;
  assert_int_equal(begin_and_confirm(), ERR_DISCONTINUITY);
}

/* The broker keeps 5 MB. */
static void a_record_that_retention_has_removed_is_none(void **state)
{
  int64_t first, end;

  (void)state;
  open_topic("retention", 1);
  produce(8, 900000);
  assert_ok(topic_reader_bounds(topic.reader, 0, KAFKA_TIMEOUT_MS, &first, &end));
  assert_true(first > 0);
  assert_ok(begin_and_confirm());
}

/* Each audit reads what was the newest record when the one before it began. So what was read in between is confirmed
 * by the next one. */
static void the_newest_record_is_compared_by_the_audit_after_the_next(void **state)
{
  (void)state;
  open_topic("later", 1);
  assert_ok(begin_and_confirm());
  produce(1, 10);
  read_to(2);
  position()->last_digest++;
  assert_ok(confirm());
  assert_int_equal(confirm(), ERR_DISCONTINUITY);
}

/* A partition that was empty gets its anchor with its first record. */
static void the_first_record_of_a_partition_is_compared_too(void **state)
{
  (void)state;
  open_topic("first", 0);
  assert_ok(begin_and_confirm());
  produce(1, 10);
  read_to(1);
  position()->last_digest++;
  assert_int_equal(confirm(), ERR_DISCONTINUITY);
}

/* Take the first step of an audit. */
static void start(void)
{
  audit.due_ns = 0;
  assert_ok(topic_audit_step(&audit, &topic.positions));
  assert_true(audit.is_running);
}

static void begin_running(void)
{
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  start();
}

static void run_to_end(void)
{
  int64_t end_ns = kafka_deadline_ns();

  while (audit.is_running && clock_now_ns() < end_ns) {
    assert_ok(topic_audit_step(&audit, &topic.positions));
    clock_sleep_ns(CLOCK_NS_PER_MS);
  }
  assert_false(audit.is_running);
  assert_int_equal(topic_reader_n_held(audit.reader), 0);
}

/* It may have read its records before the topic was replaced. */
static void an_audit_that_began_before_the_request_confirms_nothing(void **state)
{
  (void)state;
  open_topic("running", 3);
  begin_running();
  assert_false(topic_audit_confirms(&audit));
  run_to_end();
  assert_false(topic_audit_confirms(&audit));
  assert_ok(confirm());
}

static void a_partition_may_be_added_during_an_audit(void **state)
{
  (void)state;
  open_topic("added", 3);
  begin_running();
  follow(1);
  run_to_end();
  assert_ok(confirm());
}

/* Run an audit whose time is over before a broker answers. */
static void run_out_of_time(void)
{
  embedded_broker_set_down(kafka.broker, true);
  start();
  audit.due_ns = 0;
  run_to_end();
  embedded_broker_set_down(kafka.broker, false);
}

static void an_audit_that_no_broker_answers_is_no_discontinuity(void **state)
{
  (void)state;
  open_topic("down", 3);
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  run_out_of_time();
  assert_ok(confirm());
  assert_ok(confirm());
}

static void what_was_not_read_in_time_is_read_by_the_next_audit(void **state)
{
  (void)state;
  open_topic("stays", 3);
  const struct store_position right = *position();
  position()->last_digest++;
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  *position() = right;
  run_out_of_time();
  assert_int_equal(confirm(), ERR_DISCONTINUITY);
}

static void an_audit_whose_consumer_cannot_be_opened_begins_again(void **state)
{
  (void)state;
  open_topic("certificates", 3);
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  audit.due_ns = 0;
  tls_property_renew(false);
  assert_ok(topic_audit_step(&audit, &topic.positions));
  assert_false(audit.is_running);
  tls_property_renew(true);
  assert_ok(confirm());
}

static void audits_are_not_further_apart_than_the_caller_says(void **state)
{
  (void)state;
  open_topic("often", 3);
  audit.max_interval_ns = CLOCK_NS_PER_MS;
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  assert_true(audit.due_ns <= clock_now_ns() + CLOCK_NS_PER_MS);
}

/* After a discontinuity, the daemon reads from a position that is right. */
static void what_was_audited_is_forgotten_when_reading_resumes(void **state)
{
  (void)state;
  open_topic("resumes", 3);
  const struct store_position right = *position();
  position()->last_digest++;
  begin_running();
  *position() = right;
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  assert_false(topic_audit_confirms(&audit));
  assert_ok(topic_audit_step(&audit, &topic.positions));
  run_to_end();
  assert_int_equal(audit.request, TOPIC_AUDIT_DONE);
  assert_ok(topic_audit_begin(&audit, &topic.positions));
  assert_false(topic_audit_confirms(&audit));
}

#define TEST(function) cmocka_unit_test_teardown(function, end_audit)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(the_same_topic_is_confirmed_each_time),
    TEST(another_record_at_the_first_offset_is_a_discontinuity),
    TEST(a_topic_that_ends_before_the_record_is_a_discontinuity),
    TEST(a_shorter_topic_is_a_discontinuity),
    TEST(a_record_that_retention_has_removed_is_none),
    TEST(the_newest_record_is_compared_by_the_audit_after_the_next),
    TEST(the_first_record_of_a_partition_is_compared_too),
    TEST(an_audit_that_began_before_the_request_confirms_nothing),
    TEST(a_partition_may_be_added_during_an_audit),
    TEST(an_audit_that_no_broker_answers_is_no_discontinuity),
    TEST(what_was_not_read_in_time_is_read_by_the_next_audit),
    TEST(an_audit_whose_consumer_cannot_be_opened_begins_again),
    TEST(audits_are_not_further_apart_than_the_caller_says),
    TEST(what_was_audited_is_forgotten_when_reading_resumes),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
