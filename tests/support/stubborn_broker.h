/* SPDX-License-Identifier: Apache-2.0 */
/* A mock broker that fails requests when the test says so. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_STUBBORN_BROKER_H
#define TESTS_SUPPORT_STUBBORN_BROKER_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "ingest/kafka/kafka_properties.h"
#include "tests/support/assert_ok.h"

struct stubborn_broker {
  rd_kafka_t *rk;
  rd_kafka_mock_cluster_t *cluster;
  struct kafka_property properties[2];
};

enum { STUBBORN_PRODUCE = 0, STUBBORN_JOIN_GROUP = 11 }; /* Kafka's numbers of the requests */

static inline void stubborn_broker_init(struct stubborn_broker *b)
{
  char reason[512];

  b->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), reason, sizeof reason);
  assert_non_null(b->rk);
  b->cluster = rd_kafka_mock_cluster_new(b->rk, 1);
  assert_non_null(b->cluster);
  b->properties[0] = (struct kafka_property){ "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(b->cluster) };
  b->properties[1] = (struct kafka_property){ "fetch.wait.max.ms", "5" };
}

static inline void stubborn_broker_fini(struct stubborn_broker *b)
{
  rd_kafka_mock_cluster_destroy(b->cluster);
  rd_kafka_destroy(b->rk);
}

/* Return the layers for a client, with further properties of the test. Those must outlive the client. */
static inline struct kafka_layers stubborn_broker_layers(const struct stubborn_broker *b, bool is_consumer,
                                                         const struct kafka_property *own, size_t n)
{
  return (struct kafka_layers){ .layer = { { b->properties, is_consumer ? 2 : 1 }, { own, n } }, .n = 2 };
}

/* Fail the next n Produce requests, of any client. */
static inline void stubborn_broker_refuse(struct stubborn_broker *b, rd_kafka_resp_err_t error, size_t n)
{
  for (size_t i = 0; i < n; i++)
    rd_kafka_mock_push_request_errors(b->cluster, STUBBORN_PRODUCE, 1, error);
}

/* Fail the next JoinGroup request. */
static inline void stubborn_broker_refuse_join(struct stubborn_broker *b, rd_kafka_resp_err_t error)
{
  rd_kafka_mock_push_request_errors(b->cluster, STUBBORN_JOIN_GROUP, 1, error);
}

/* Make the topic unknown to clients, or known again. */
static inline void stubborn_broker_hide(struct stubborn_broker *b, const char *topic, bool is_hidden)
{
  rd_kafka_mock_topic_set_error(b->cluster, topic,
                                is_hidden ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : RD_KAFKA_RESP_ERR_NO_ERROR);
}

#endif
