/* SPDX-License-Identifier: Apache-2.0 */
/* Checking all properties of a client together, by making a client and destroying it. The client is not used otherwise.
 */
#include "ingest/kafka/kafka_client.h"

/* Those of our defaults that limit the values of other properties. */
static const struct kafka_property consumer_defaults[] = {
  { "group.id", "sluice" },
  { "session.timeout.ms", "6000" },
};

err_t kafka_client_check(bool is_consumer, const struct kafka_layers *layers)
{
  struct kafka_layers all = kafka_layers_under(consumer_defaults, is_consumer ? 2 : 0, layers);
  rd_kafka_conf_t *conf;
  rd_kafka_t *rk;

  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_log_cb(conf, NULL); /* it would only log that there are no brokers */
  if (rd_kafka_conf_set(conf, "bootstrap.servers", "", NULL, 0) != RD_KAFKA_CONF_OK) {
    rd_kafka_conf_destroy(conf);
    FAIL(ERR_KAFKA, "librdkafka requires a broker");
  }
  TRY(kafka_client_new(is_consumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf, &rk));
  kafka_client_destroy(rk, 0);
  return ERR_OK;
}
