/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of librdkafka in the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/config_fixture.h"

static void any_property_of_librdkafka_is_taken_as_it_is(void **state)
{
  (void)state;
  struct config *c = open_text("kafka:\n  bootstrap.servers: a:1,b:2\n  socket.timeout.ms: 1000\n  sasl.password: ''\n"
                               "catalogue: {kafka: {fetch.min.bytes: 7}}\n"
                               "query:\n  kafka: {check.crcs: true, isolation.level: read_uncommitted}\n"
                               "  answer_kafka: {batch.size: 100000, compression.codec: zstd}\n" STORE SPACES);
  assert_int_equal(c->kafka.n, 3);
  assert_string_equal(c->kafka.items[0].name, "bootstrap.servers");
  assert_string_equal(c->kafka.items[0].value, "a:1,b:2");
  assert_string_equal(c->kafka.items[1].value, "1000");
  assert_string_equal(c->kafka.items[2].value, "");
  assert_int_equal(c->catalogue.kafka.n, 1);
  assert_int_equal(c->query.kafka.n, 2);
  assert_string_equal(c->query.kafka.items[0].value, "true");
  assert_string_equal(c->query.answer_kafka.items[1].name, "compression.codec");
  config_close(&c);
}

static void properties_that_librdkafka_refuses_are_refused_with_its_reason(void **state)
{
  (void)state;
  assert_refused(STORE SPACES "kafka:\n  bootstrap.servers: a\n  linger.mss: 1\n", 5, "kafka", "linger.mss");
  assert_refused("query:\n  kafka:\n    fetch.wait.max.ms: soon\n" REST, 3, "query.kafka", "fetch.wait.max.ms");
  assert_refused("query:\n  answer_kafka:\n    linger.ms: 9000000\n" REST, 3, "query.answer_kafka", "range");
  assert_refused("query:\n  kafka:\n    error_cb: x\n" REST, 3, "query.kafka", "error_cb");
  assert_refused("query:\n  kafka:\n    ut_handle_ProduceResponse: x\n" REST, 3, "query.kafka", "no property");
  assert_refused("kafka:\n  bootstrap:\n    servers: x\n" STORE SPACES, 3, "bootstrap", "dots");
  assert_refused("kafka:\n  bootstrap.servers:\n" STORE SPACES, 2, "bootstrap.servers", "exactly one value");
  assert_refused("kafka:\n  client.id: \"a\\0b\"\n" STORE SPACES, 2, "client.id", "zero byte");
}

static void properties_that_sluice_sets_are_refused_with_the_reason(void **state)
{
  const char *everywhere[] = { "enable.auto.commit",
                               "enable.auto.offset.store",
                               "auto.offset.reset",
                               "group.id",
                               "enable.partition.eof",
                               "auto.commit.enable",
                               "transactional.id",
                               "test.mock.num.brokers",
                               "message.timeout.ms",
                               "delivery.timeout.ms",
                               "delivery.report.only.error",
                               "partition.assignment.strategy",
                               "acks",
                               "request.required.acks",
                               "retries",
                               "message.send.max.retries",
                               "enabled_events",
                               "enable.gapless.guarantee",
                               "group.instance.id",
                               "group.protocol" };
  const char *maps[] = { "kafka:\n  %s: 1\n" STORE SPACES, "catalogue: {kafka: {\n %s: 1}}\n" REST,
                         "query: {kafka: {\n %s: 1}}\n" REST, "query: {answer_kafka: {\n %s: 1}}\n" REST };
  char text[TEXT_BYTES];

  (void)state;
  for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++) {
    for (size_t j = 0; j < 4; j++) {
      snprintf(text, sizeof text, maps[j], everywhere[i]);
      assert_refused(text, 2, everywhere[i], "must not be set");
    }
  }
  for (size_t j = 0; j < 2; j++) {
    snprintf(text, sizeof text, maps[j], "isolation.level");
    assert_refused(text, 2, "isolation.level", "committed");
  }
  assert_refused("query: {kafka: {group.id: x}}\n" REST, 1, "group.id", "query.group");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_property_of_librdkafka_is_taken_as_it_is),
    cmocka_unit_test(properties_that_librdkafka_refuses_are_refused_with_its_reason),
    cmocka_unit_test(properties_that_sluice_sets_are_refused_with_the_reason),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
