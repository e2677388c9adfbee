/* SPDX-License-Identifier: Apache-2.0 */
/* The query consumer: only answered queries are committed. Each join of a group takes the embedded broker three seconds,
 * so the tests run side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <librdkafka/rdkafka.h>

#include "ingest/readers/query_reader.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"

enum { QUERIES = 12 };

static struct kafka_fixture kafka;
static struct offset_tracker *tracker; /* that of the open reader */

static struct query_reader *open_reader(const char *group)
{
  struct kafka_layers layers = kafka_fixture_layers(&kafka, true);
  struct query_reader *r;

  assert_ok(offset_tracker_open(&tracker));
  assert_ok(query_reader_open(&layers, "queries", group, "", tracker, &r));
  assert_false(query_reader_is_assigned(r));
  return r;
}

/* Read the next record. Its value is the number of its offset. */
static struct query_record next_record(struct query_reader *r)
{
  int64_t end_ns = kafka_deadline_ns();
  struct query_record taken;
  bool has_record = false;
  char want[16];

  while (!has_record && clock_now_ns() < end_ns)
    assert_ok(query_reader_poll(r, 100, true, &has_record, &taken));
  assert_true(has_record);
  assert_true(query_reader_is_assigned(r));
  snprintf(want, sizeof want, "q%d", (int)taken.record.offset);
  assert_true(span_equal(taken.record.value, span_of_str(want)));
  assert_true(taken.record.has_key && span_equal(taken.record.key, span_of_str("key")));
  assert_true(span_equal(taken.record.content_type, span_of_str("application/json")));
  return taken;
}

static void send_queries(int from, int to)
{
  struct kafka_layers layers = kafka_fixture_layers(&kafka, false);
  struct sender_header header = { "content-type", span_of_str("application/json") };
  struct sender *s;
  char value[16];

  assert_ok(sender_open(&layers, NULL, NULL, &s));
  for (int i = from; i < to; i++) {
    snprintf(value, sizeof value, "q%d", i);
    struct sender_message message = { .topic = "queries",
                                      .has_key = true,
                                      .key = span_of_str("key"),
                                      .has_value = true,
                                      .value = span_of_str(value),
                                      .headers = &header,
                                      .n_headers = 1 };
    assert_ok(sender_send(s, &message));
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  sender_close(&s);
}

/* Take no record for longer than the group waits for a member that does not poll. No record is lost or returned twice.
 */
static void a_reader_stays_without_taking(void **state)
{
  static const struct kafka_property own[] = { { "max.poll.interval.ms", "6000" }, { "session.timeout.ms", "6000" } };
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, true, own, 2);
  struct query_reader *r;
  struct query_record record;
  bool has_record;

  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(query_reader_open(&layers, "queries", "patient", "", tracker, &r));
  assert_int_equal(next_record(r).record.offset, 0);
  uint64_t generation = query_reader_generation(r);
  for (int64_t end_ns = clock_now_ns() + 8 * CLOCK_NS_PER_S; clock_now_ns() < end_ns;) {
    assert_ok(query_reader_poll(r, 50, false, &has_record, &record));
    assert_false(has_record);
    assert_true(query_reader_is_assigned(r));
  }
  assert_int_equal(offset_tracker_n_held(tracker), 1);
  for (int i = 1; i < QUERIES; i++)
    assert_int_equal(next_record(r).record.offset, i);
  assert_int_equal(query_reader_generation(r), generation);
  query_reader_close(&r);
  offset_tracker_close(&tracker);
}

/* A reader that retires commits what is done once more: a commit that was under way may never arrive. */
static void a_retired_reader_commits_again(void **state)
{
  struct query_reader *r = open_reader("retired");
  struct position under_way[1];
  struct query_record taken;

  (void)state;
  for (int i = 0; i < 3; i++)
    offset_tracker_done(tracker, next_record(r).ticket);
  taken = next_record(r);                                  /* not answered */
  (void)offset_tracker_committable(tracker, under_way, 1); /* 0, if the reader itself has just begun a commit */
  query_reader_retire(&r);
  assert_null(r);
  offset_tracker_close(&tracker);
  r = open_reader("retired");
  assert_int_equal(next_record(r).record.offset, taken.record.offset);
  query_reader_close(&r);
  offset_tracker_close(&tracker);
}

static void poll_without_taking(struct query_reader *r)
{
  struct query_record record;
  bool has_record;

  assert_ok(query_reader_poll(r, 10, false, &has_record, &record));
  assert_false(has_record);
}

/* The group asks for the partition because another reader joins. It waits until the queries are answered. Where the
 * next owner begins is tested on a real broker: this one refuses commits during a rebalance. */
static void partitions_wait_for_answers(void **state)
{
  enum { TAKEN = 4 };
  struct kafka_layers layers = kafka_fixture_layers(&kafka, true);
  struct offset_tracker *others;
  struct query_reader *r, *other;
  uint32_t tickets[TAKEN];

  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(offset_tracker_open(&others));
  assert_ok(query_reader_open(&layers, "queries", "sharing", "", tracker, &r));
  for (int i = 0; i < TAKEN; i++)
    tickets[i] = next_record(r).ticket;
  assert_true(*query_reader_member(r) != '\0');
  assert_ok(query_reader_open(&layers, "queries", "sharing", "", others, &other));
  for (int64_t end_ns = kafka_deadline_ns(); !query_reader_is_awaited(r) && clock_now_ns() < end_ns;) {
    poll_without_taking(r);
    poll_without_taking(other);
  }
  for (int i = 0; i < 3; i++) {
    assert_true(query_reader_is_awaited(r));
    poll_without_taking(r);
  }
  for (int i = 0; i < TAKEN; i++)
    offset_tracker_done(tracker, tickets[i]);
  poll_without_taking(r);
  assert_false(query_reader_is_awaited(r));
  query_reader_close(&r);
  query_reader_close(&other);
  offset_tracker_close(&tracker);
  offset_tracker_close(&others);
}

/* The group gets its partition although queries were not answered. Their answers would be second ones: the caller must
 * know at once, and not when it has partitions again. */
static void given_up_queries_are_told(void **state)
{
  struct kafka_layers layers = kafka_fixture_layers(&kafka, true);
  struct offset_tracker *others;
  struct query_reader *r, *other;
  int64_t end_ns = kafka_deadline_ns();

  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(offset_tracker_open(&others));
  assert_ok(query_reader_open(&layers, "queries", "giving up", "", tracker, &r));
  next_record(r);
  uint64_t generation = query_reader_generation(r);
  assert_ok(query_reader_open(&layers, "queries", "giving up", "", others, &other));
  while (query_reader_is_assigned(r) && clock_now_ns() < end_ns) {
    assert_int_equal(query_reader_generation(r), generation);
    poll_without_taking(other);
    poll_without_taking(r);
  }
  assert_false(query_reader_is_assigned(r));
  assert_true(query_reader_generation(r) > generation);
  query_reader_close(&r);
  query_reader_close(&other);
  offset_tracker_close(&tracker);
  offset_tracker_close(&others);
}

/* A new group begins at the end. Its first reader goes before it has read a query. The next one must not skip what was
 * written meanwhile. */
static void the_end_is_kept(void **state)
{
  static const struct kafka_property own[] = { { "auto.offset.reset", "latest" } };
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, true, own, 1);
  struct query_reader *r;

  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(query_reader_open(&layers, "queries", "newest", "", tracker, &r));
  for (int64_t end_ns = kafka_deadline_ns(); !query_reader_is_assigned(r) && clock_now_ns() < end_ns;)
    poll_without_taking(r);
  assert_true(query_reader_is_assigned(r));
  query_reader_abandon(&r);
  send_queries(QUERIES, QUERIES + 1);
  assert_ok(query_reader_open(&layers, "queries", "newest", "", tracker, &r));
  assert_int_equal(next_record(r).record.offset, QUERIES);
  query_reader_close(&r);
  offset_tracker_close(&tracker);
}

/* A fatal error, as when another member fences this one. It must be reported: otherwise a daemon would be ready and
 * answer nothing. */
static void assert_fatal_error_is_told(struct query_reader *r)
{
  rd_kafka_t *rk = *(rd_kafka_t **)(void *)r; /* the first field of the reader */
  int64_t end_ns = clock_now_ns() + 3 * CLOCK_NS_PER_S;
  err_code_t err = ERR_OK;

  assert_int_equal(rd_kafka_type(rk), RD_KAFKA_CONSUMER);
  rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "fenced for the test");
  while (err == ERR_OK && clock_now_ns() < end_ns) {
    struct query_record record;
    bool has_record;
    err = query_reader_poll(r, 100, true, &has_record, &record);
  }
  assert_int_equal(err, ERR_KAFKA);
  assert_non_null(strstr(err_message(), "fenced for the test"));
}

static void a_second_reader_continues_at_the_first_query_that_is_not_done(void **state)
{
  struct query_reader *r;
  uint32_t tickets[QUERIES];

  (void)state;
  r = open_reader("group");
  for (int i = 0; i < QUERIES; i++) {
    struct query_record taken = next_record(r);
    assert_int_equal(taken.record.offset, i); /* a new group starts at the oldest query */
    tickets[i] = taken.ticket;
  }
  assert_int_equal(offset_tracker_n_open(tracker), QUERIES);
  for (int i = 0; i < QUERIES; i++) {
    if (i != 5 && i != 9)
      offset_tracker_done(tracker, tickets[QUERIES - 1 - i]); /* 6 and 2 stay open */
  }
  assert_int_equal(offset_tracker_n_open(tracker), 2);
  assert_int_equal(offset_tracker_n_held(tracker), QUERIES - 2); /* all after the older of the two */
  offset_tracker_close(&tracker);                                /* the reader is also an owner */
  query_reader_close(&r);                                        /* commits before it closes */
  assert_null(r);

  r = open_reader("group");
  struct query_record taken = next_record(r);
  assert_int_equal(taken.record.offset, 2);
  offset_tracker_done(tracker, taken.ticket);
  assert_fatal_error_is_told(r);
  query_reader_close(&r);
  offset_tracker_close(&tracker);
}

/* The reason is there until the group lets the reader in. */
static void a_session_timeout_that_the_broker_refuses_is_the_reason(void **state)
{
  struct stubborn_broker broker;
  struct query_reader *r;

  (void)state;
  stubborn_broker_init(&broker);
  struct kafka_layers layers = stubborn_broker_layers(&broker, true, NULL, 0);
  rd_kafka_mock_topic_create(broker.cluster, "queries", 1, 1);
  stubborn_broker_refuse_join(&broker, RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT);
  assert_ok(offset_tracker_open(&tracker));
  assert_ok(query_reader_open(&layers, "queries", "group", "", tracker, &r));
  int64_t end_ns = kafka_deadline_ns();
  while (!query_reader_denied(r) && clock_now_ns() < end_ns)
    poll_without_taking(r);
  assert_non_null(query_reader_denied(r));
  assert_non_null(strstr(query_reader_denied(r), "session.timeout.ms is outside"));
  while (!query_reader_is_assigned(r) && clock_now_ns() < end_ns)
    poll_without_taking(r);
  assert_true(query_reader_is_assigned(r));
  assert_null(query_reader_denied(r));
  query_reader_close(&r);
  offset_tracker_close(&tracker);
  stubborn_broker_fini(&broker);
}

static int open_broker(void **state)
{
  (void)state;
  kafka_fixture_init(&kafka);
  assert_ok(embedded_broker_create_topic(kafka.broker, "queries", 1));
  send_queries(0, QUERIES);
  return 0;
}

static int close_broker(void **state)
{
  (void)state;
  kafka_fixture_fini(&kafka);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_reader_stays_without_taking),
    cmocka_unit_test(a_retired_reader_commits_again),
    cmocka_unit_test(partitions_wait_for_answers),
    cmocka_unit_test(given_up_queries_are_told),
    cmocka_unit_test(a_second_reader_continues_at_the_first_query_that_is_not_done),
    cmocka_unit_test(the_end_is_kept),
    cmocka_unit_test(a_session_timeout_that_the_broker_refuses_is_the_reason),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
