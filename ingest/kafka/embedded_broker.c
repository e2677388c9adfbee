/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded broker, on top of librdkafka's mock cluster. */
#include "ingest/kafka/embedded_broker.h"

#include "base/mem.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_client.h" /* first, because the mock's header needs librdkafka's */

#include <librdkafka/rdkafka_mock.h>

struct embedded_broker {
  rd_kafka_t *rk;
  rd_kafka_mock_cluster_t *cluster;
};

err_t embedded_broker_open(struct embedded_broker **out)
{
  AUTO(embedded_broker_close) struct embedded_broker *b = NULL;
  struct kafka_layers none = { 0 };
  rd_kafka_conf_t *conf;

  TRY(mem_array(1, sizeof *b, &b));
  TRY(kafka_conf_make(&none, &conf));
  TRY(kafka_client_new(RD_KAFKA_PRODUCER, conf, &b->rk));
  b->cluster = rd_kafka_mock_cluster_new(b->rk, 1);
  if (!b->cluster)
    FAIL(ERR_KAFKA, "the embedded broker cannot be started: is the loopback interface up?");
  *out = b;
  b = NULL;
  return ERR_OK;
}

static void close_broker(void *object)
{
  struct embedded_broker *b = object;

  if (b->cluster)
    rd_kafka_mock_cluster_destroy(b->cluster);
  if (b->rk)
    kafka_client_destroy(b->rk, 0);
  mem_free(&b);
}

void embedded_broker_close(struct embedded_broker **b)
{
  if (*b)
    kafka_closing_run("embedded_broker", close_broker, *b);
  *b = NULL;
}

void embedded_broker_set_down(struct embedded_broker *b, bool is_down)
{
  if (is_down)
    rd_kafka_mock_broker_set_down(b->cluster, 1);
  else
    rd_kafka_mock_broker_set_up(b->cluster, 1);
}

const char *embedded_broker_bootstrap(const struct embedded_broker *b)
{
  return rd_kafka_mock_cluster_bootstraps(b->cluster);
}

err_t embedded_broker_create_topic(struct embedded_broker *b, const char *topic, int n_partitions)
{
  rd_kafka_resp_err_t error = rd_kafka_mock_topic_create(b->cluster, topic, n_partitions, 1);

  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA, "the embedded broker cannot create topic %s: %s", topic, rd_kafka_err2str(error));
  return ERR_OK;
}
