/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of the control topic, on an embedded broker: it goes on while its certificates cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/models/models_topic.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/log_watch.h"
#include "tests/support/tls_property.h"

enum { RECORDS = 8 };

static const int64_t AUDIT_NS = 60 * CLOCK_NS_PER_S;

static struct topic_record records[RECORDS];

static void produce(const struct kafka_fixture *kafka, const char *key)
{
  const struct kafka_layers layers = kafka_fixture_layers(kafka, false);
  const struct sender_message message = { .topic = "models", .has_key = true, .key = span_of_str(key) };
  struct sender *sender;

  assert_ok(sender_open(&layers, NULL, NULL, &sender));
  assert_ok(sender_send(sender, &message));
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  sender_close(&sender);
}

/* Poll until a record is there, and note where it leaves the store. */
static void expect(struct models_topic *t, const char *key, struct store_position *stored)
{
  int64_t end_ns = kafka_deadline_ns();
  size_t n = 0;

  while (n == 0 && clock_now_ns() < end_ns)
    assert_ok(models_topic_poll(t, stored->at.next > 0 ? stored : NULL, 10, RECORDS, records, &n));
  assert_int_equal(n, 1);
  assert_true(span_equal(records[0].key, span_of_str(key)));
  *stored = *models_topic_position(t);
}

static void certificates_that_do_not_fit_leave_the_former_consumer_in_place(void **state)
{
  struct kafka_fixture kafka;
  struct kafka_layers layers;
  struct store_position stored = { 0 };
  struct models_topic t;

  (void)state;
  kafka_fixture_init(&kafka);
  assert_ok(embedded_broker_create_topic(kafka.broker, "models", 1));
  layers = kafka_fixture_layers_with(&kafka, true, tls_property, 1);
  layers.client = "models";
  assert_ok(models_topic_init(&layers, "models", AUDIT_NS, &t));
  produce(&kafka, "a");
  expect(&t, "a", &stored);
  tls_property_renew(false);
  produce(&kafka, "b");
  expect(&t, "b", &stored);
  assert_true(log_watch_has("event=kafka_client_not_renewed client=models"));
  tls_property_renew(true);
  t.followed.renewal.due_ns = 0; /* do not wait for the next attempt */
  produce(&kafka, "c");
  expect(&t, "c", &stored);
  assert_false(topic_reader_is_outdated(t.followed.reader));
  models_topic_fini(&t);
  kafka_fixture_fini(&kafka);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(certificates_that_do_not_fit_leave_the_former_consumer_in_place),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
