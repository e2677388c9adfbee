/* SPDX-License-Identifier: Apache-2.0 */
/* One consumer after the other on an embedded broker, and the positions that each begins with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/topic/followed_topic.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/log_watch.h"
#include "tests/support/tls_property.h"

static struct kafka_fixture kafka;
static struct sender *sender;

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

static void produce(const char *topic, int n)
{
  const struct sender_message message = { .topic = topic, .has_key = true, .key = span_of_str("k") };

  for (int i = 0; i < n; i++)
    assert_ok(sender_send(sender, &message));
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
}

static void open_topic(const char *name, struct followed_topic *out)
{
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, true, tls_property, 1);

  layers.client = name;
  assert_ok(embedded_broker_create_topic(kafka.broker, name, 1));
  assert_ok(followed_topic_init(&layers, name, out));
}

/* Follow partition 0 from where the store stands. */
static void follow(struct followed_topic *t, const struct store_position *stored, int64_t from)
{
  int64_t begin;

  assert_ok(followed_topic_add(t, stored, KAFKA_TIMEOUT_MS, &begin));
  assert_int_equal(begin, from);
  assert_ok(topic_reader_assign(t->reader, 0, begin));
}

/* Read until partition 0 is at this end. Returns the number of records that are new. */
static size_t read_to_end(struct followed_topic *t, int64_t end)
{
  int64_t deadline_ns = kafka_deadline_ns();
  const struct topic_position *p = &t->positions.items[0];
  size_t n_new = 0;

  while ((!p->is_at_end || p->position.at.next < end) && clock_now_ns() < deadline_ns) {
    struct topic_record record;
    struct topic_events events;
    size_t n;
    bool is_new;
    topic_reader_poll(t->reader, 1, 100, &record, &n, &events);
    if (n == 0)
      continue;
    assert_ok(followed_topic_take(t, &record, &is_new));
    n_new += is_new;
    topic_reader_release_all(t->reader);
  }
  assert_true(p->is_at_end);
  assert_int_equal(p->position.at.next, end);
  return n_new;
}

static void each_record_is_new_once_and_an_end_never(void **state)
{
  struct followed_topic t;

  (void)state;
  open_topic("once", &t);
  produce("once", 3);
  follow(&t, NULL, 0);
  assert_int_equal(read_to_end(&t, 3), 3);
  const struct store_position stored = t.positions.items[0].position;
  followed_topic_clear(&t);
  assert_int_equal(t.positions.n, 0);
  produce("once", 2);
  follow(&t, &stored, 2); /* the newest one is read again, and compared */
  assert_int_equal(read_to_end(&t, 5), 2);
  followed_topic_fini(&t);
}

static void a_position_beyond_the_end_is_a_discontinuity(void **state)
{
  const struct store_position stored = { .at = { 0, 7 }, .last_offset = 6 };
  struct followed_topic t;
  int64_t from;

  (void)state;
  open_topic("short", &t);
  produce("short", 3);
  assert_int_equal(followed_topic_add(&t, &stored, KAFKA_TIMEOUT_MS, &from), ERR_DISCONTINUITY);
  followed_topic_fini(&t);
}

static void a_topic_has_holes_unless_it_is_known_that_it_has_none(void **state)
{
  struct followed_topic t = { 0 };

  (void)state;
  followed_topic_note_policy(&t, &(struct topic_policy){ .is_known = false });
  assert_true(t.positions.has_holes);
  followed_topic_note_policy(&t, &(struct topic_policy){ .is_known = true, .is_compacted = false });
  assert_false(t.positions.has_holes);
  followed_topic_note_policy(&t, &(struct topic_policy){ .is_known = true, .is_compacted = true });
  assert_true(t.positions.has_holes);
}

static void a_consumer_that_takes_over_follows_no_partition(void **state)
{
  struct followed_topic t;

  (void)state;
  open_topic("again", &t);
  produce("again", 3);
  follow(&t, NULL, 0);
  assert_int_equal(read_to_end(&t, 3), 3);
  followed_topic_leave(&t);
  assert_true(t.is_left);
  const struct topic_reader *former = t.reader;
  assert_ok(followed_topic_reopen(&t));
  assert_ptr_not_equal(t.reader, former);
  assert_false(t.is_left);
  assert_int_equal(t.positions.n, 0);
  follow(&t, NULL, 0);
  assert_int_equal(read_to_end(&t, 3), 3);
  followed_topic_fini(&t);
}

static void while_no_consumer_can_be_opened_the_former_one_stays(void **state)
{
  struct followed_topic t;

  (void)state;
  open_topic("stays", &t);
  produce("stays", 3);
  follow(&t, NULL, 0);
  followed_topic_leave(&t);
  tls_property_renew(false);
  assert_int_equal(followed_topic_reopen(&t), ERR_KAFKA_RETRY);
  assert_true(t.is_left);
  assert_int_equal(t.positions.n, 1);
  assert_int_equal(read_to_end(&t, 3), 3);
  tls_property_renew(true);
  assert_ok(followed_topic_reopen(&t));
  assert_false(t.is_left);
  followed_topic_fini(&t);
}

static void another_consumer_is_opened_only_for_other_certificates(void **state)
{
  struct topic_reader *next;
  struct followed_topic t;

  (void)state;
  open_topic("renewed", &t);
  assert_ok(followed_topic_renew(&t, &next));
  assert_null(next);
  tls_property_renew(false);
  assert_ok(followed_topic_renew(&t, &next));
  assert_null(next);
  assert_true(log_watch_has("event=kafka_client_not_renewed client=renewed"));
  tls_property_renew(true);
  t.renewal.due_ns = INT64_MAX; /* too early after the last try */
  assert_ok(followed_topic_renew(&t, &next));
  assert_null(next);
  t.renewal.due_ns = 0;
  assert_ok(followed_topic_renew(&t, &next));
  assert_non_null(next);
  const struct topic_reader *opened = next;
  followed_topic_take_over(&t, &next);
  assert_null(next);
  assert_ptr_equal(t.reader, opened);
  assert_false(t.renewal.is_said); /* the next reason is said again */
  assert_ok(followed_topic_renew(&t, &next));
  assert_null(next);
  followed_topic_fini(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_record_is_new_once_and_an_end_never),
    cmocka_unit_test(a_position_beyond_the_end_is_a_discontinuity),
    cmocka_unit_test(a_topic_has_holes_unless_it_is_known_that_it_has_none),
    cmocka_unit_test(a_consumer_that_takes_over_follows_no_partition),
    cmocka_unit_test(while_no_consumer_can_be_opened_the_former_one_stays),
    cmocka_unit_test(another_consumer_is_opened_only_for_other_certificates),
  };

  return cmocka_run_group_tests(tests, open_broker, close_broker);
}
