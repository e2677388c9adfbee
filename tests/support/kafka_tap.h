/* SPDX-License-Identifier: Apache-2.0 */
/* Read all messages of a topic with librdkafka alone, headers included. To be included after cmocka.h. */
#ifndef TESTS_SUPPORT_KAFKA_TAP_H
#define TESTS_SUPPORT_KAFKA_TAP_H

#include <librdkafka/rdkafka.h>

#include "tests/support/kafka_fixture.h"

struct kafka_tap {
  rd_kafka_t *rk;
};

/* Read every partition from its first record. */
static inline void kafka_tap_open(struct kafka_tap *tap, const char *bootstrap, const char *topic, int n_partitions)
{
  static const char *const properties[][2] = {
    { "group.id", "tap" },
    { "enable.auto.commit", "false" },
    { "fetch.wait.max.ms", "5" },
    { "auto.offset.reset", "earliest" },
  };
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n_partitions);
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  char reason[512];

  rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, reason, sizeof reason);
  for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
    assert_int_equal(rd_kafka_conf_set(conf, properties[i][0], properties[i][1], reason, sizeof reason),
                     RD_KAFKA_CONF_OK);
  tap->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
  assert_non_null(tap->rk);
  rd_kafka_poll_set_consumer(tap->rk);
  for (int32_t i = 0; i < n_partitions; i++)
    rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
  assert_int_equal(rd_kafka_assign(tap->rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_topic_partition_list_destroy(list);
}

static inline void kafka_tap_init(struct kafka_tap *tap, const struct kafka_fixture *k, const char *topic,
                                  int n_partitions)
{
  kafka_tap_open(tap, embedded_broker_bootstrap(k->broker), topic, n_partitions);
}

static inline void kafka_tap_fini(struct kafka_tap *tap)
{
  rd_kafka_consumer_close(tap->rk);
  rd_kafka_destroy(tap->rk);
}

/* Return the next message; NULL if none comes in time. The caller destroys it with rd_kafka_message_destroy(). */
static inline rd_kafka_message_t *kafka_tap_next(struct kafka_tap *tap, int timeout_ms)
{
  int64_t end_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;

  do {
    rd_kafka_message_t *m = rd_kafka_consumer_poll(tap->rk, 50);
    if (m && !m->err)
      return m;
    if (m)
      rd_kafka_message_destroy(m);
  } while (clock_now_ns() < end_ns);
  return NULL;
}

/* Copy a header to `text` and return it; fails the test if there is none. */
static inline const char *kafka_tap_header(const rd_kafka_message_t *m, const char *name, char text[2048])
{
  rd_kafka_headers_t *headers;
  const void *value;
  size_t n;

  assert_int_equal(rd_kafka_message_headers(m, &headers), RD_KAFKA_RESP_ERR_NO_ERROR);
  assert_int_equal(rd_kafka_header_get_last(headers, name, &value, &n), RD_KAFKA_RESP_ERR_NO_ERROR);
  assert_true(n < 2048);
  memcpy(text, value, n);
  text[n] = '\0';
  return text;
}

#endif
