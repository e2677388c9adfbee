/* SPDX-License-Identifier: Apache-2.0 */
/* Start the embedded broker if it is configured, and put the property layers of each Kafka client together. */
#include "daemon/setup/kafka_setup.h"

#include "base/log.h"
#include "daemon/config/config_kafka.h"
#include "daemon/config/config_shard.h"

static err_t create_topics(struct kafka_setup *s)
{
  for (size_t i = 0; i < CONFIG_KAFKA_TOPICS; i++) {
    const struct config_kafka_topic *topic = &config_kafka_topics[i];
    const char *name = config_kafka_topic_name(s->config, i);
    if (*name && (!topic->is_for_shards || config_is_shard(s->config)))
      TRY(embedded_broker_create_topic(s->broker, name,
                                       topic->is_ordered ? 1 : (int)s->config->embedded_broker.partitions));
  }
  return ERR_OK;
}

err_t kafka_setup_open(const struct config *config, struct kafka_setup *out)
{
  *out = (struct kafka_setup){ .config = config, .reader_group = { "group.id", config->catalogue.group } };
  if (!config->embedded_broker.is_enabled)
    return ERR_OK;
  TRY(embedded_broker_open(&out->broker));
  out->embedded[0] = (struct kafka_property){ "bootstrap.servers", embedded_broker_bootstrap(out->broker) };
  /* The embedded broker answers each fetch only after this time, even if records are there. */
  out->embedded[1] = (struct kafka_property){ "fetch.wait.max.ms", "1" };
  TRY(create_topics(out));
  log_info("embedded_broker", "bootstrap=%s partitions=%llu note=\"its records are lost when the daemon ends\"",
           kafka_setup_bootstrap(out), (unsigned long long)config->embedded_broker.partitions);
  return ERR_OK;
}

void kafka_setup_close(struct kafka_setup *s)
{
  embedded_broker_close(&s->broker);
}

const char *kafka_setup_bootstrap(const struct kafka_setup *s)
{
  if (s->broker)
    return embedded_broker_bootstrap(s->broker);
  for (size_t i = 0; i < s->config->kafka.n; i++) {
    if (strcmp(s->config->kafka.items[i].name, "bootstrap.servers") == 0)
      return s->config->kafka.items[i].value;
  }
  return "";
}

struct kafka_layers kafka_setup_layers(const struct kafka_setup *s, const struct kafka_properties *own,
                                       bool is_consumer)
{
  struct kafka_layers layers = { .n = 0 };

  if (s->broker)
    kafka_layers_add(&layers, s->embedded, is_consumer ? 2 : 1);
  kafka_layers_add(&layers, s->config->kafka.items, s->config->kafka.n);
  kafka_layers_add(&layers, own->items, own->n);
  return layers;
}

struct kafka_layers kafka_setup_reader_layers(const struct kafka_setup *s, const struct kafka_properties *own,
                                              const char *client)
{
  struct kafka_layers layers = kafka_setup_layers(s, own, true);

  if (s->config->catalogue.commit_interval_ms > 0) /* otherwise we may perhaps use no group */
    kafka_layers_add(&layers, &s->reader_group, 1);
  layers.client = client;
  return layers;
}
