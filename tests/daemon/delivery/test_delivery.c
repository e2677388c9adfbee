/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the delivery with brokers that refuse messages, are full, or are away. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/delivery/delivery.h"
#include "daemon/tracing/tracing.h"
#include "tests/support/http_fixture.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"
#include "tests/support/tls_property.h"

static struct kafka_fixture kafka;
static struct counters counters;
static struct offset_tracker *tracker; /* each test has its own */
static struct tracing *tracing;        /* NULL: there are no spans */

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

static int open_tracker(void **state)
{
  (void)state;
  assert_ok(offset_tracker_open(&tracker));
  return 0;
}

static int close_tracker(void **state)
{
  (void)state;
  offset_tracker_close(&tracker);
  return 0;
}

/* Begin a query that waits for its reply. Returns its ticket. */
static uint32_t new_ticket(void)
{
  static int64_t offset;
  uint32_t ticket;

  assert_ok(offset_tracker_begin(tracker, 0, offset++, &ticket, NULL));
  return ticket;
}

static struct delivery *open_with(const struct kafka_layers *layers, struct alarm *alarm)
{
  struct delivery_config config = {
    .layers = layers,
    .query_topic = "queries",
    .answer_topic = "answers",
    .dead_letter_topic = "letters",
    .has_reply_topics = true,
    .reply_timeout_ms = 3000,
    .counters = &counters,
    .tracker = tracker,
    .tracing = tracing,
    .alarm = alarm,
  };
  struct delivery *d;

  memset(&counters, 0, sizeof counters);
  assert_ok(delivery_open(&config, &d));
  return d;
}

static struct delivery *open_delivery(const struct kafka_property *own, size_t n)
{
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, false, own, n);

  return open_with(&layers, NULL);
}

static struct dead_letter letter_of(const char *topic, const char *reason, int64_t offset)
{
  return (struct dead_letter){ .topic = topic,
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

/* The reason is the thread's last failure, and a full queue fails, too. */
static void a_dead_letter_keeps_its_reason_while_the_queue_is_full(void **state)
{
  static const struct kafka_property own[] = { { "queue.buffering.max.messages", "1" }, { "linger.ms", "20" } };
  _Atomic bool is_settled[8] = { 0 };
  struct delivery *d = open_delivery(own, 2);
  struct kafka_tap tap;
  char text[2048], want[100];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "letters", 1));
  for (int64_t offset = 0; offset < 8; offset++) {
    assert_int_equal(fail_for(offset), ERR_ITEM);
    struct dead_letter letter = letter_of("letters", err_message(), offset);
    letter.waiter = DEAD_LETTER_WAITER_CATALOGUE;
    letter.is_settled = &is_settled[offset];
    int64_t end_ns = kafka_deadline_ns();
    while (!delivery_send_dead_letter(d, &letter) && clock_now_ns() < end_ns)
      clock_sleep_ns(CLOCK_NS_PER_MS);
  }
  int64_t settled_by_ns = kafka_deadline_ns();
  for (int i = 0; i < 8; i++) {
    while (!atomic_load(&is_settled[i]) && clock_now_ns() < settled_by_ns)
      clock_sleep_ns(CLOCK_NS_PER_MS);
    assert_true(atomic_load(&is_settled[i]));
  }
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
    assert_int_equal(m->payload != NULL, offset % 2); /* the original value; a tombstone has none */
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  delivery_close(&d);
  assert_null(d);
  assert_int_equal(counters_sum(counters.dead_letters, COUNTERS_LETTERS), 8);
  assert_int_equal(counters_get(&counters.undeliverable), 0);
}

static void a_reply_carries_key_value_and_format(void **state)
{
  struct delivery *d = open_delivery(NULL, 0);
  struct delivery_reply reply = {
    .has_key = true, .key = span_of_str("client"), .value = span_of_str("{}"), .format = WIRE_JSON,
    .ticket = new_ticket(),
  };
  struct kafka_tap tap;
  char text[2048];

  (void)state;
  assert_ok(embedded_broker_create_topic(kafka.broker, "answers", 1));
  delivery_send_reply(d, &reply);
  reply.has_key = false;
  reply.format = WIRE_PROTOBUF;
  reply.ticket = new_ticket();
  delivery_send_reply(d, &reply);
  delivery_close(&d); /* waits for the broker */
  kafka_tap_init(&tap, &kafka, "answers", 1);
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
  _Atomic bool is_settled = false;
  struct dead_letter letter = letter_of("letters", "no broker", 1);
  struct delivery_reply reply = { .value = span_of_str("{}"), .format = WIRE_JSON };

  (void)state;
  int64_t begin_ns = clock_now_ns();
  delivery_give_up_at(d, begin_ns + 100 * CLOCK_NS_PER_MS);
  letter.waiter = DEAD_LETTER_WAITER_CATALOGUE;
  letter.is_settled = &is_settled;
  assert_true(delivery_send_dead_letter(d, &letter));
  for (int i = 0; i < 4; i++)
    delivery_send_reply(d, &reply); /* the queue has room for two of the four */
  assert_false(atomic_load(&is_settled));
  assert_true(clock_now_ns() - begin_ns >= 100 * CLOCK_NS_PER_MS);
  delivery_close(&d);
  assert_true(clock_now_ns() - begin_ns < 10 * CLOCK_NS_PER_S);
  assert_int_equal(counters_get(&counters.undeliverable), 0); /* nothing is given up: it is handled after a restart */
}

/* A search that was interrupted for these replies would wait too, and keep its epoch. */
static void replies_that_never_block_wait_in_memory(void **state)
{
  static const struct kafka_property own[] = { { "bootstrap.servers", "127.0.0.1:1" },
                                               { "queue.buffering.max.messages", "2" } };
  struct delivery *d = open_delivery(own, 2);
  struct delivery_reply reply = { .value = span_of_str("{}"), .format = WIRE_JSON, .never_blocks = true };

  (void)state;
  assert_true(delivery_has_room(d));
  for (int i = 0; i < 1100; i++)
    delivery_send_reply(d, &reply);
  assert_false(delivery_has_room(d));
  delivery_give_up_at(d, clock_now_ns());
  delivery_close(&d);
}

/* The catalogue goes on while no broker accepts its letters, and keeps the letters that are refused here. */
static void a_letter_without_room_is_refused_and_blocks_nobody(void **state)
{
  static const struct kafka_property own[] = { { "bootstrap.servers", "127.0.0.1:1" },
                                               { "queue.buffering.max.messages", "5" } };
  struct delivery *d = open_delivery(own, 2);
  _Atomic bool is_settled = false;
  size_t n_taken = 0;

  (void)state;
  int64_t begin_ns = clock_now_ns();
  for (int i = 0; i < 8; i++) {
    struct dead_letter letter = letter_of("letters", "no broker", i);
    letter.waiter = DEAD_LETTER_WAITER_CATALOGUE;
    letter.is_settled = &is_settled;
    n_taken += delivery_send_dead_letter(d, &letter);
  }
  assert_int_equal(n_taken, 5);
  assert_true(clock_now_ns() - begin_ns < 5 * CLOCK_NS_PER_S);
  assert_false(is_settled);
  while (counters_get(&counters.dead_letters_waiting) != 5 && clock_now_ns() - begin_ns < 10 * CLOCK_NS_PER_S)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(counters_get(&counters.dead_letters_waiting), 5);
  assert_int_equal(counters_sum(counters.dead_letters, COUNTERS_LETTERS), 5);
  struct dead_letter of_query = letter_of("letters", "no room", 9);
  of_query.waiter = DEAD_LETTER_WAITER_QUERY;
  of_query.ticket = new_ticket();
  assert_true(delivery_send_dead_letter(d, &of_query)); /* nobody keeps it: it is logged and counted */
  assert_int_equal(counters_get(&counters.undeliverable), 1);
  assert_int_equal(offset_tracker_n_open(tracker), 0);
  delivery_give_up_at(d, clock_now_ns());
  delivery_close(&d);
  assert_false(is_settled);
}

/* ---- Brokers that refuse ---- */

enum { QUERIES = 12 };

/* A delivery to a stubborn broker, and the tickets of queries that wait for replies. */
struct stubborn {
  struct stubborn_broker broker;
  struct delivery *delivery;
  struct alarm alarm;
  int n_answer_partitions;
  uint32_t tickets[QUERIES];
};

static void open_partitioned(struct stubborn *s, int n_answer_partitions, const struct kafka_property *own, size_t n)
{
  s->n_answer_partitions = n_answer_partitions;
  stubborn_broker_init(&s->broker);
  assert_int_equal(rd_kafka_mock_topic_create(s->broker.cluster, "answers", n_answer_partitions, 1), 0);
  assert_int_equal(rd_kafka_mock_topic_create(s->broker.cluster, "letters", 1, 1), 0);
  for (size_t i = 0; i < QUERIES; i++)
    s->tickets[i] = new_ticket();
  struct kafka_layers layers = stubborn_broker_layers(&s->broker, false, own, n);
  assert_ok(alarm_init(&s->alarm));
  s->delivery = open_with(&layers, &s->alarm);
}

static void open_stubborn(struct stubborn *s, const struct kafka_property *own, size_t n)
{
  open_partitioned(s, 1, own, n);
}

static void close_stubborn(struct stubborn *s)
{
  delivery_close(&s->delivery);
  alarm_fini(&s->alarm);
  stubborn_broker_fini(&s->broker);
}

static bool has_alarm(const struct stubborn *s)
{
  struct pollfd fd = { .fd = s->alarm.fd, .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

static void wait_for_open(size_t n_open)
{
  int64_t end_ns = kafka_deadline_ns();

  while (offset_tracker_n_open(tracker) != n_open && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(offset_tracker_n_open(tracker), n_open);
}

static void reply_with(struct stubborn *s, size_t i, struct span value)
{
  const struct trace_headers sampled = {
    { span_of_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") }
  };
  struct delivery_reply reply = {
    .has_key = true,
    .key = span_of_str("client"),
    .id = span_of_str("some id"),
    .space = span_of_str("books"),
    .value = value,
    .format = WIRE_JSON,
    .ticket = s->tickets[i],
    .partition = 2,
    .offset = (int64_t)i,
    .traced = tracing_begin(tracing, &sampled, clock_now_ns()),
  };

  delivery_send_reply(s->delivery, &reply);
}

static void reply_to(struct stubborn *s, size_t i)
{
  reply_with(s, i, span_of_str("the answer"));
}

static void open_tap(struct kafka_tap *tap, const struct stubborn *s, const char *topic)
{
  kafka_tap_open(tap, rd_kafka_mock_cluster_bootstraps(s->broker.cluster), topic,
                 strcmp(topic, "answers") == 0 ? s->n_answer_partitions : 1);
}

/* Describe a message in words: does it have a key, the id of the query, an error, an answer? */
static const char *shape_of(const rd_kafka_message_t *m, char text[100])
{
  char value[2000];

  snprintf(value, sizeof value, "%.*s", m->payload ? (int)m->len : 0, (const char *)m->payload);
  snprintf(text, 100, "%s%s%s%s", m->key ? "key " : "", strstr(value, "some id") ? "id " : "",
           strstr(value, "INTERNAL") ? "error" : "", strcmp(value, "the answer") == 0 ? "answer" : "");
  return text;
}

static void assert_next(struct kafka_tap *tap, const char *shape)
{
  rd_kafka_message_t *m = kafka_tap_next(tap, KAFKA_TIMEOUT_MS);
  char text[100];

  assert_non_null(m);
  assert_string_equal(shape_of(m, text), shape);
  rd_kafka_message_destroy(m);
}

/* A query is given up only if a broker refuses even the smallest replacement. */
static void a_refused_reply_is_replaced_by_less_until_something_is_accepted(void **state)
{
  struct stubborn s;
  struct kafka_tap answers, letters;
  char text[2048];

  (void)state;
  open_stubborn(&s, NULL, 0);
  for (size_t i = 0; i <= 5; i++) {
    stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_INVALID_RECORD, i);
    reply_to(&s, i);
    wait_for_open(QUERIES - 1 - i);
  }
  open_tap(&answers, &s, "answers");
  assert_next(&answers, "key answer");
  assert_next(&answers, "key id error");
  assert_next(&answers, "error");
  kafka_tap_fini(&answers);
  open_tap(&letters, &s, "letters");
  for (size_t i = 3; i <= 4; i++) {
    rd_kafka_message_t *m = kafka_tap_next(&letters, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    assert_null(m->payload);
    assert_int_equal(m->key != NULL, i == 3);
    assert_string_equal(kafka_tap_header(m, "sluice.topic", text), "queries");
    assert_string_equal(kafka_tap_header(m, "sluice.partition", text), "2");
    assert_int_equal(strtol(kafka_tap_header(m, "sluice.offset", text), NULL, 10), i);
    assert_non_null(strstr(kafka_tap_header(m, "sluice.reason", text), "answers"));
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&letters);
  assert_int_equal(counters_get(&counters.undeliverable), 1);
  assert_false(has_alarm(&s));
  close_stubborn(&s);
}

/* The trace of a query that is answered after a restart begins then. */
static void a_query_has_spans_if_it_gets_a_letter_and_none_if_it_is_read_again(void **state)
{
  static struct http_fixture server;
  struct stubborn s;

  (void)state;
  http_fixture_init(&server);
  const struct tracing_config with = { .endpoint = server.url, .source.topic = "queries", .counters = &counters };
  assert_ok(tracing_open(&with, &tracing));
  open_stubborn(&s, NULL, 0);
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_INVALID_RECORD, 3); /* the answer and both errors */
  reply_to(&s, 0);
  wait_for_open(QUERIES - 1);
  rd_kafka_mock_broker_set_down(s.broker.cluster, 1);
  reply_to(&s, 1);
  delivery_give_up_at(s.delivery, clock_now_ns());
  close_stubborn(&s);
  tracing_close(&tracing);
  assert_int_equal(offset_tracker_n_open(tracker), QUERIES - 1);
  assert_int_equal(counters_get(&counters.spans), 2);
  assert_non_null(strstr(http_fixture_request(&server), "INTERNAL"));    /* the query */
  assert_non_null(strstr(http_fixture_request(&server), "UNDELIVERED")); /* the reply */
  http_fixture_fini(&server);
}

/* Brokers refuse whole batches: a small answer must not be lost for its neighbours. */
static void an_answer_whose_batch_was_too_large_is_sent_alone(void **state)
{
  struct stubborn s;
  struct kafka_tap answers;

  (void)state;
  open_stubborn(&s, NULL, 0);
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
  reply_to(&s, 0);
  wait_for_open(QUERIES - 1);
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 2);
  reply_to(&s, 1);
  wait_for_open(QUERIES - 2);
  open_tap(&answers, &s, "answers");
  assert_next(&answers, "key answer");
  assert_next(&answers, "key id error");
  kafka_tap_fini(&answers);
  close_stubborn(&s);
}

/* Have a batch with the reply refused as too large. Returns the partition that the reply is sent to alone. */
static int32_t reply_alone(struct stubborn *s, size_t i, struct kafka_tap *answers)
{
  char text[100];

  stubborn_broker_refuse(&s->broker, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
  reply_to(s, i);
  wait_for_open(QUERIES - 1 - i);
  rd_kafka_message_t *m = kafka_tap_next(answers, KAFKA_TIMEOUT_MS);
  assert_non_null(m);
  assert_string_equal(shape_of(m, text), "key answer");
  int32_t partition = m->partition;
  rd_kafka_message_destroy(m);
  return partition;
}

/* The producer that sends messages alone is opened again, too: the partition of a key shows which one has sent it.
 * While it cannot be opened, the usual one sends. */
static void an_answer_is_sent_alone_by_a_renewed_producer(void **state)
{
  struct stubborn s;
  struct kafka_tap answers;

  (void)state;
  open_partitioned(&s, 8, tls_property, 2);
  open_tap(&answers, &s, "answers");
  int32_t former = reply_alone(&s, 0, &answers);
  kafka_renewal_lock();
  tls_property[1].value = "murmur2_random";
  kafka_renewal_unlock();
  tls_property_renew(true);
  reply_to(&s, 1); /* its report passes through the thread that renews */
  wait_for_open(QUERIES - 2);
  assert_next(&answers, "key answer");
  assert_int_not_equal(reply_alone(&s, 2, &answers), former);
  tls_property_renew(false);
  log_watch_wait("event=kafka_client_not_renewed client=answers");
  reply_alone(&s, 3, &answers);
  /* of the usual producer, and of the one that sends messages alone */
  assert_int_equal(log_watch_count("event=kafka_client_not_renewed client=answers"), 2);
  tls_property_renew(true);
  reply_alone(&s, 4, &answers);
  assert_false(has_alarm(&s));
  kafka_tap_fini(&answers);
  close_stubborn(&s);
}

/* Many hits with long keys: librdkafka refuses such an answer before it is sent. */
static void an_answer_over_the_limit_of_messages_becomes_an_error_with_its_size(void **state)
{
  enum { BYTES = 1500000 };
  struct stubborn s;
  struct kafka_tap answers;
  uint8_t *value = calloc(1, BYTES);
  char text[2000];

  (void)state;
  assert_non_null(value);
  open_stubborn(&s, NULL, 0);
  reply_with(&s, 0, span_of(value, BYTES));
  wait_for_open(QUERIES - 1);
  free(value);
  open_tap(&answers, &s, "answers");
  rd_kafka_message_t *m = kafka_tap_next(&answers, KAFKA_TIMEOUT_MS);
  assert_non_null(m);
  snprintf(text, sizeof text, "%.*s", (int)m->len, (const char *)m->payload);
  assert_non_null(strstr(text, "INTERNAL"));
  assert_non_null(strstr(text, "1500000 bytes"));
  assert_non_null(strstr(text, "too large"));
  rd_kafka_message_destroy(m);
  kafka_tap_fini(&answers);
  close_stubborn(&s);
}

/* Nothing can be sent afterwards. Undelivered queries must be answered after a restart, so no ticket may end. */
static void a_fatal_error_of_the_producer_raises_the_alarm_and_ends_no_ticket(void **state)
{
  static const struct kafka_property own[] = { { "enable.idempotence", "true" } };
  struct stubborn s;

  (void)state;
  open_stubborn(&s, own, 1);
  reply_to(&s, 0);
  wait_for_open(QUERIES - 1);
  assert_false(has_alarm(&s));
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1);
  reply_to(&s, 1);
  int64_t end_ns = kafka_deadline_ns();
  while (!has_alarm(&s) && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_true(has_alarm(&s));
  for (size_t i = 2; i < QUERIES; i++)
    reply_to(&s, i);
  assert_int_equal(offset_tracker_n_open(tracker), QUERIES - 1);
  close_stubborn(&s);
}

/* Answers wait for the answer topic for as long as it is away: none is replaced or given up. */
static void an_answer_waits_for_its_topic(void **state)
{
  static const struct kafka_property own[] = { { "topic.metadata.propagation.max.ms", "0" } };
  struct stubborn s;
  struct kafka_tap answers;

  (void)state;
  open_stubborn(&s, own, 1);
  stubborn_broker_hide(&s.broker, "answers", true);
  for (size_t i = 0; i < 4; i++) {
    reply_to(&s, i);
    clock_sleep_ns(400 * CLOCK_NS_PER_MS); /* the first is reported; the last fails at once */
  }
  assert_int_equal(offset_tracker_n_open(tracker), QUERIES);
  stubborn_broker_hide(&s.broker, "answers", false);
  wait_for_open(QUERIES - 4);
  open_tap(&answers, &s, "answers");
  for (size_t i = 0; i < 4; i++)
    assert_next(&answers, "key answer");
  kafka_tap_fini(&answers);
  assert_false(has_alarm(&s));
  assert_int_equal(counters_get(&counters.undeliverable), 0);
  close_stubborn(&s);
}

static void wait_for_answer_topic(struct stubborn *s, bool is_away)
{
  int64_t end_ns = kafka_deadline_ns();

  while (delivery_is_answer_topic_away(s->delivery) != is_away && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  assert_int_equal(delivery_is_answer_topic_away(s->delivery), is_away);
}

/* The daemon is not ready while its answers wait. Nobody sends it queries then, whose answers could show that the topic
 * is back. */
static void the_answer_topic_is_not_away_once_the_last_waiting_message_is_refused(void **state)
{
  struct stubborn s;

  (void)state;
  open_stubborn(&s, NULL, 0);
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1);
  stubborn_broker_refuse(&s.broker, RD_KAFKA_RESP_ERR_INVALID_RECORD, 3); /* the answer and both errors */
  reply_to(&s, 0);
  wait_for_answer_topic(&s, true);
  wait_for_open(QUERIES - 1); /* the dead letter is delivered, through another producer */
  wait_for_answer_topic(&s, false);
  close_stubborn(&s);
}

/* Far more replies than the queues of both producers hold. */
static void a_missing_reply_topic_costs_no_query_and_no_daemon(void **state)
{
  enum { N = 15000 };
  static const struct kafka_property own[] = { { "queue.buffering.max.messages", "500" } };
  struct stubborn s;
  struct kafka_tap answers;

  (void)state;
  open_stubborn(&s, own, 1);
  stubborn_broker_hide(&s.broker, "nobody.s", true);
  struct delivery_reply reply = { .route = REPLY_TO_OWN_TOPIC, .own_topic = "nobody.s", .id = span_of_str("some id"),
                                  .value = span_of_str("{}"), .format = WIRE_JSON };
  for (size_t i = 0; i < N; i++) {
    reply.ticket = new_ticket();
    delivery_send_reply(s.delivery, &reply);
  }
  delivery_close(&s.delivery); /* waits for all replies */
  assert_int_equal(offset_tracker_n_open(tracker), QUERIES);
  assert_false(has_alarm(&s));
  assert_int_equal(counters_get(&counters.undeliverable), 0);
  assert_int_equal(counters_sum(counters.errors, COUNTERS_ERRORS), N);
  open_tap(&answers, &s, "answers");
  for (size_t i = 0; i < N; i++)
    assert_next(&answers, "id error");
  kafka_tap_fini(&answers);
  close_stubborn(&s);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_tracker, close_tracker)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(a_dead_letter_keeps_its_reason_while_the_queue_is_full),
    TEST(a_reply_carries_key_value_and_format),
    TEST(nobody_waits_for_a_broker_beyond_the_time_to_give_up),
    TEST(replies_that_never_block_wait_in_memory),
    TEST(a_letter_without_room_is_refused_and_blocks_nobody),
    TEST(a_refused_reply_is_replaced_by_less_until_something_is_accepted),
    TEST(a_query_has_spans_if_it_gets_a_letter_and_none_if_it_is_read_again),
    TEST(an_answer_whose_batch_was_too_large_is_sent_alone),
    TEST(an_answer_is_sent_alone_by_a_renewed_producer),
    TEST(an_answer_over_the_limit_of_messages_becomes_an_error_with_its_size),
    TEST(a_fatal_error_of_the_producer_raises_the_alarm_and_ends_no_ticket),
    TEST(an_answer_waits_for_its_topic),
    TEST(the_answer_topic_is_not_away_once_the_last_waiting_message_is_refused),
    TEST(a_missing_reply_topic_costs_no_query_and_no_daemon),
  };

  return SIDE_BY_SIDE(tests, open_broker, close_broker);
}
