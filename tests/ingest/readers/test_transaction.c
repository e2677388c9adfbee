/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer of transactions says of topics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/kafka/kafka_closing.h"
#include "ingest/readers/transaction.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/stubborn_broker.h"

static void a_topic_is_gone_only_if_a_broker_says_so(void **state)
{
  struct stubborn_broker broker;
  struct transaction *t;

  (void)state;
  stubborn_broker_init(&broker);
  rd_kafka_mock_topic_create(broker.cluster, "topic", 1, 1);
  struct kafka_layers layers = stubborn_broker_layers(&broker, false, NULL, 0);
  assert_ok(transaction_open(&layers, NULL, &t));
  assert_true(transaction_has_topic(t, "topic", KAFKA_TIMEOUT_MS));
  assert_ok(transaction_verify_topic(t, "topic", KAFKA_TIMEOUT_MS));
  stubborn_broker_hide(&broker, "topic", true);
  assert_true(transaction_has_topic(t, "topic", KAFKA_TIMEOUT_MS)); /* it is remembered */
  assert_int_equal(transaction_verify_topic(t, "topic", KAFKA_TIMEOUT_MS), ERR_KAFKA_TOPIC);
  rd_kafka_mock_broker_set_down(broker.cluster, 1);
  assert_int_equal(transaction_verify_topic(t, "topic", 100), ERR_KAFKA_RETRY);
  rd_kafka_mock_broker_set_up(broker.cluster, 1);
  stubborn_broker_hide(&broker, "topic", false);
  assert_ok(transaction_verify_topic(t, "topic", KAFKA_TIMEOUT_MS)); /* it was created again */
  transaction_close(&t);
  stubborn_broker_fini(&broker);
  kafka_closing_wait(kafka_deadline_ns());
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_topic_is_gone_only_if_a_broker_says_so),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
