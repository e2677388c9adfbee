/* SPDX-License-Identifier: Apache-2.0 */
/* The merge thread and a broker that fails requests: what becomes of a producer that is lost, and of a backlog. The spans of a merge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/merge/merge_thread.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/wire/wire.h"
#include "ingest/wire/wire_partial.h"
#include "tests/support/http_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"
#include "tests/support/tls_property.h"

enum { END_TRANSACTION = 26 }; /* Kafka's number of the request */

static struct stubborn_broker broker;
static struct config config;
static struct kafka_setup setup;
static struct counters counters;
static struct merge_counters merge_counters;
static struct shards_heard *heard;
static struct alarm alarms;
static struct merge_thread *merge;
static struct sender *shard;
static struct kafka_tap answers;
static struct region scratch;
static struct tracing *tracing; /* NULL: there are no spans */

static void configure(void)
{
  config = (struct config){
    .kafka = { broker.properties, 2 },
    .query = { .group = "group",
               .partials_topic = "partials",
               .answer_topic = "answers",
               .kafka = { tls_property, 1 },
               .answer_kafka = { tls_property, 1 } },
    .merge = { .instance = "one",
               .is_exactly_once = true,
               .wait_ms = KAFKA_TIMEOUT_MS,
               .remember_ms = KAFKA_TIMEOUT_MS,
               .memory_bytes = 1 << 20 },
  };
  setup = (struct kafka_setup){ .config = &config };
}

static void open_merge(const struct config *with, struct merge_thread **out)
{
  struct merge_thread_context context = { with, &setup, &counters, &merge_counters, heard, &alarms, tracing };

  assert_ok(merge_thread_open(&context, out));
}

/* Set-up of tests that open their merge themselves. One that is closed while it joins would keep the next one waiting:
 * the mock broker waits for the end of its session. */
static int prepare(void **state)
{
  (void)state;
  stubborn_broker_init(&broker);
  rd_kafka_mock_topic_create(broker.cluster, "partials", 1, 1);
  rd_kafka_mock_topic_create(broker.cluster, "answers", 1, 1);
  configure();
  merge_counters = (struct merge_counters){ 0 };
  assert_ok(alarm_init(&alarms));
  assert_ok(shards_heard_open(&heard));
  struct kafka_layers layers = stubborn_broker_layers(&broker, false, NULL, 0);
  assert_ok(sender_open(&layers, NULL, NULL, &shard));
  kafka_tap_open(&answers, rd_kafka_mock_cluster_bootstraps(broker.cluster), "answers", 1);
  return 0;
}

static int begin(void **state)
{
  prepare(state);
  open_merge(&config, &merge);
  return 0;
}

static int end(void **state)
{
  (void)state;
  merge_thread_close(&merge);
  kafka_tap_fini(&answers);
  sender_close(&shard);
  shards_heard_close(&heard);
  alarm_fini(&alarms);
  stubborn_broker_fini(&broker);
  region_fini(&scratch);
  return 0;
}

static void send_record(struct span key, struct span value)
{
  const struct sender_message message = {
    .topic = "partials", .has_key = key.n > 0, .key = key, .has_value = true, .value = value
  };

  assert_ok(sender_send(shard, &message));
}

/* The answer of one of n_shards shards. It lives in `scratch`. */
static struct span encode_part(const char *id, uint32_t number, uint32_t n_shards)
{
  struct answer answer = { .id = span_of_str(id), .space = span_of_str("books"), .generation = 1 };
  const struct span traceparent = span_of_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  struct partial partial = {
    .shard = number, .n_shards = n_shards, .k = 1, .model = span_of_str("m"), .trace = &traceparent, .n_trace = 1
  };
  struct span head, encoded, value;

  region_reset(&scratch);
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &scratch, &encoded));
  assert_ok(wire_encode_partial(&partial, &scratch, &head));
  assert_ok(wire_complete_partial(head, encoded, &scratch, &value));
  return value;
}

static void send_part_of(const char *id, uint32_t number, uint32_t n_shards)
{
  send_record(span_of_str(id), encode_part(id, number, n_shards));
}

/* Send the answer of a layout with one shard. */
static void send_part(const char *id)
{
  send_part_of(id, 0, 1);
}

/* Send a record that is no part, of a shard of another layout. */
static void send_kind(const char *key, enum partial_kind kind)
{
  const struct partial partial = { .kind = kind, .shard = 2, .n_shards = 3 };
  struct span value;

  region_reset(&scratch);
  assert_ok(wire_encode_partial(&partial, &scratch, &value));
  send_record(span_of_str(key), value);
}

static void write_part(const char *id)
{
  send_part(id);
  assert_ok(sender_flush(shard, KAFKA_TIMEOUT_MS));
}

/* It lives as long as the message, and in `scratch`. */
static struct answer decode(const rd_kafka_message_t *m)
{
  struct answer answer;

  region_reset(&scratch);
  assert_ok(wire_decode_answer(span_of(m->payload, m->len), &scratch, &answer));
  return answer;
}

static void wait_for_answer(const char *id)
{
  bool is_found = false;

  while (!is_found) {
    rd_kafka_message_t *m = kafka_tap_next(&answers, 2 * KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    is_found = span_equal(decode(m).id, span_of_str(id));
    rd_kafka_message_destroy(m);
  }
}

/* The next answer is this one, with this error. */
static void expect_error(const char *id, enum answer_error error)
{
  rd_kafka_message_t *m = kafka_tap_next(&answers, 2 * KAFKA_TIMEOUT_MS);

  assert_non_null(m);
  struct answer answer = decode(m);
  assert_true(span_equal(answer.id, span_of_str(id)));
  assert_int_equal(answer.error, error);
  rd_kafka_message_destroy(m);
}

static void expect_answer(const char *id)
{
  expect_error(id, ANSWER_OK);
}

static void fail_next_end(rd_kafka_resp_err_t error)
{
  rd_kafka_mock_push_request_errors(broker.cluster, END_TRANSACTION, 1, error);
}

static bool has_alarm(void)
{
  struct pollfd fd = { .fd = alarms.fd, .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

static void wait_for_alarm(void)
{
  int64_t end_ns = clock_now_ns() + 2 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;

  while (!has_alarm() && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(alarm_failure(&alarms), ERR_KAFKA);
}

static void wait_until_ready(const struct merge_thread *t)
{
  int64_t end_ns = clock_now_ns() + 2 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;
  const char *reason;

  while ((reason = merge_thread_not_ready(t)) && !has_alarm() && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_null(reason);
}

/* The broker knows nothing of a transaction that librdkafka wants to end. The second time, that is no accident. */
static void a_producer_that_is_lost_is_replaced_once_in_a_while(void **state)
{
  (void)state;
  fail_next_end(RD_KAFKA_RESP_ERR_INVALID_TXN_STATE);
  write_part("first");
  wait_for_answer("first"); /* the mock shows what is not committed */
  write_part("second");
  wait_for_answer("second");
  assert_true(log_watch_has("other clients begin again"));
  assert_false(has_alarm());
  fail_next_end(RD_KAFKA_RESP_ERR_INVALID_TXN_STATE);
  write_part("third");
  wait_for_alarm();
}

static void a_producer_that_is_fenced_is_not_replaced(void **state)
{
  (void)state;
  fail_next_end(RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
  write_part("first");
  wait_for_alarm();
  assert_non_null(strstr(err_message(), "another daemon with the same merge.instance"));
}

/* Many parts wait when the merge begins. It takes them in portions. */
static void every_part_of_a_backlog_is_answered(void **state)
{
  enum { PARTS = 3500 };
  static bool is_answered[PARTS];
  char id[16];

  (void)state;
  for (int i = 0; i < PARTS; i++) {
    snprintf(id, sizeof id, "%d", i);
    send_part(id);
  }
  assert_ok(sender_flush(shard, KAFKA_TIMEOUT_MS));
  open_merge(&config, &merge);
  for (int n = 0; n < PARTS; n++) {
    rd_kafka_message_t *m = kafka_tap_next(&answers, 2 * KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    struct answer answer = decode(m);
    assert_true(answer.id.n < sizeof id);
    snprintf(id, sizeof id, "%.*s", (int)answer.id.n, (const char *)answer.id.p);
    assert_in_range(atoi(id), 0, PARTS - 1);
    assert_false(is_answered[atoi(id)]);
    is_answered[atoi(id)] = true;
    rd_kafka_message_destroy(m);
  }
}

static void a_sampled_query_has_spans_of_its_merge(void **state)
{
  static struct http_fixture server;

  (void)state;
  http_fixture_init(&server);
  const struct tracing_config with = { .endpoint = server.url, .source.topic = "partials", .counters = &counters };
  assert_ok(tracing_open(&with, &tracing));
  open_merge(&config, &merge);
  write_part("first");
  wait_for_answer("first");
  merge_thread_close(&merge);
  tracing_close(&tracing);
  assert_int_equal(counters_get(&counters.spans), 3);
  assert_non_null(strstr(http_fixture_request(&server), "\"name\":\"process partials\""));
  assert_non_null(strstr(http_fixture_request(&server), "\"name\":\"wait\""));
  assert_non_null(strstr(http_fixture_request(&server), "\"name\":\"send answers\""));
  http_fixture_fini(&server);
}

/* The topic has one partition. */
static void a_merge_that_gets_no_partition_waits_for_one(void **state)
{
  struct config another = config;
  struct merge_thread *second;

  (void)state;
  another.merge.instance = "two";
  wait_until_ready(merge);
  open_merge(&another, &second);
  wait_until_ready(second);
  wait_until_ready(merge);
  write_part("first");
  wait_for_answer("first");
  merge_thread_close(&second);
  write_part("second");
  wait_for_answer("second");
  assert_false(has_alarm());
}

/* A certificate that has expired may be why no broker answers. */
static void certificates_that_change_before_brokers_answer_are_taken_up(void **state)
{
  (void)state;
  rd_kafka_mock_broker_set_down(broker.cluster, 1);
  open_merge(&config, &merge);
  tls_property_renew(false);
  log_watch_wait("event=kafka_client_not_renewed client=answers");
  tls_property_renew(true);
  rd_kafka_mock_broker_set_up(broker.cluster, 1);
  write_part("first");
  wait_for_answer("first");
}

static void a_part_that_comes_after_the_answer_gets_no_second_one(void **state)
{
  (void)state;
  write_part("first");
  expect_answer("first");
  write_part("first");
  write_part("second");
  expect_answer("second");
  assert_int_equal(counters_get(&merge_counters.late), 1);
}

/* Of a query that waits, and of one whose parts come later. */
static void what_another_merge_has_answered_is_not_answered_again(void **state)
{
  (void)state;
  wait_until_ready(merge); /* before that, records are read twice */
  send_part_of("waits", 0, 2);
  send_kind("waits", PARTIAL_ANSWERED);
  send_kind("later", PARTIAL_ANSWERED);
  send_part_of("waits", 1, 2);
  send_part("later");
  write_part("last");
  expect_answer("last");
  merge_thread_close(&merge);
  assert_int_equal(counters_get(&merge_counters.late), 2);
  assert_int_equal(counters_get(&merge_counters.open_queries), 0);
}

static void what_is_no_part_is_counted_and_passed(void **state)
{
  struct shard_heard shards[3];

  (void)state;
  wait_until_ready(merge);
  send_record(span_of_str("key"), span_of_str("\xff\xff no partial at all"));
  send_record((struct span){ 0 }, encode_part("no key", 0, 1));
  send_kind("shard 2", PARTIAL_HEARTBEAT);
  send_part_of("first", 0, 2);
  send_part_of("first", 0, 2);
  send_part_of("first", 1, 2);
  assert_ok(sender_flush(shard, KAFKA_TIMEOUT_MS));
  expect_answer("first");
  assert_int_equal(counters_get(&merge_counters.unusable), 2);
  assert_int_equal(counters_get(&merge_counters.heartbeats), 1);
  assert_int_equal(counters_get(&merge_counters.parts), 3);
  assert_int_equal(counters_get(&merge_counters.duplicates), 1);
  assert_int_equal(shards_heard_list(heard, shards, 3), 3);
  assert_int_equal(shards[1].shard, 1);
  assert_int_equal(shards[2].n_shards, 3); /* of the heartbeat */
}

/* The other shard is away. */
static void a_query_is_answered_when_its_wait_is_over(void **state)
{
  enum { WAIT_MS = 100 };

  (void)state;
  config.merge.wait_ms = WAIT_MS;
  open_merge(&config, &merge);
  int64_t sent_ns = clock_now_ns();
  send_part_of("first", 0, 2);
  assert_ok(sender_flush(shard, KAFKA_TIMEOUT_MS));
  expect_error("first", ANSWER_PARTIAL);
  assert_true(clock_now_ns() - sent_ns >= WAIT_MS * CLOCK_NS_PER_MS);
}

/* Without transactions, because the mock keeps no positions of these. */
static void reopen_without_transactions(void)
{
  merge_thread_close(&merge);
  config.merge.is_exactly_once = false;
  open_merge(&config, &merge);
}

static void a_part_that_waits_is_read_again_after_a_restart(void **state)
{
  (void)state;
  reopen_without_transactions();
  send_part_of("first", 0, 2);
  write_part("second");
  expect_answer("second");
  write_part("third");
  expect_answer("third"); /* the positions that go with the second answer are at the broker by now */
  reopen_without_transactions();
  send_part_of("first", 1, 2);
  assert_ok(sender_flush(shard, KAFKA_TIMEOUT_MS));
  expect_answer("first");
  assert_int_equal(counters_get(&merge_counters.incomplete), 0);
}

/* Positions are committed once a second, but not past an answer that no broker has. */
static void an_answer_that_waits_for_its_topic_is_made_again_after_a_restart(void **state)
{
  enum { TRIES = 15 }; /* a tenth of a second apart */

  (void)state;
  reopen_without_transactions();
  stubborn_broker_hide(&broker, "answers", true);
  write_part("first");
  int64_t end_ns = clock_now_ns() + 2 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;
  while (counters_get(&merge_counters.retries) < TRIES && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_true(counters_get(&merge_counters.retries) >= TRIES);
  merge_thread_close(&merge);
  stubborn_broker_hide(&broker, "answers", false);
  open_merge(&config, &merge);
  expect_answer("first");
}

/* Some clients close slowly on a busy machine. */
static int wait_for_closing(void **state)
{
  (void)state;
  kafka_closing_wait(clock_now_ns() + 2 * KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_producer_that_is_lost_is_replaced_once_in_a_while, begin, end),
    cmocka_unit_test_setup_teardown(a_producer_that_is_fenced_is_not_replaced, begin, end),
    cmocka_unit_test_setup_teardown(every_part_of_a_backlog_is_answered, prepare, end),
    cmocka_unit_test_setup_teardown(a_sampled_query_has_spans_of_its_merge, prepare, end),
    cmocka_unit_test_setup_teardown(a_merge_that_gets_no_partition_waits_for_one, begin, end),
    cmocka_unit_test_setup_teardown(certificates_that_change_before_brokers_answer_are_taken_up, prepare, end),
    cmocka_unit_test_setup_teardown(a_part_that_comes_after_the_answer_gets_no_second_one, begin, end),
    cmocka_unit_test_setup_teardown(what_another_merge_has_answered_is_not_answered_again, begin, end),
    cmocka_unit_test_setup_teardown(what_is_no_part_is_counted_and_passed, begin, end),
    cmocka_unit_test_setup_teardown(a_query_is_answered_when_its_wait_is_over, prepare, end),
    cmocka_unit_test_setup_teardown(a_part_that_waits_is_read_again_after_a_restart, prepare, end),
    cmocka_unit_test_setup_teardown(an_answer_that_waits_for_its_topic_is_made_again_after_a_restart, prepare, end),
  };

  return SIDE_BY_SIDE(tests, NULL, wait_for_closing);
}
