/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for one topic's settings with Kafka's DescribeConfigs request, which other brokers may not support. */
#include "ingest/kafka/topic_policy_ask.h"

#include <stdlib.h>
#include <string.h>

#include "ingest/kafka/kafka_topic.h"

static void read_entry(const rd_kafka_ConfigEntry_t *entry, struct topic_policy *out)
{
  const char *name = rd_kafka_ConfigEntry_name(entry);
  const char *value = rd_kafka_ConfigEntry_value(entry);

  if (!value)
    return;
  if (strcmp(name, "cleanup.policy") == 0) {
    out->is_known = true;
    out->is_compacted = strstr(value, "compact") != NULL;
    out->deletes = strstr(value, "delete") != NULL;
  } else if (strcmp(name, "delete.retention.ms") == 0) {
    out->delete_retention_ms = strtoll(value, NULL, 10);
  } else if (strcmp(name, "retention.ms") == 0) {
    out->retention_ms = strtoll(value, NULL, 10);
  }
}

static void read_event(rd_kafka_event_t *event, struct topic_policy *out)
{
  const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
  size_t n = 0;

  if (!result || rd_kafka_event_error(event))
    return;
  const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(result, &n);
  if (n != 1 || rd_kafka_ConfigResource_error(resources[0]))
    return;
  const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resources[0], &n);
  for (size_t i = 0; i < n; i++)
    read_entry(entries[i], out);
}

/* Can the controller be asked? */
static bool has_controller(rd_kafka_t *rk, const char *topic, int timeout_ms)
{
  const struct rd_kafka_metadata *metadata;

  if (kafka_topic_metadata(rk, topic, timeout_ms, &metadata))
    return false;
  bool is_there = kafka_topic_has_controller(rk, metadata, timeout_ms);
  rd_kafka_metadata_destroy(metadata);
  return is_there;
}

struct topic_policy topic_policy_ask(rd_kafka_t *rk, const char *topic, int timeout_ms)
{
  struct topic_policy policy = { 0 };
  char reason[256];

  if (!has_controller(rk, topic, timeout_ms))
    return policy;
  rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
  rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);

  if (rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason, sizeof reason) ==
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms + 1000);
    if (event) {
      read_event(event, &policy);
      rd_kafka_event_destroy(event);
    }
  }
  rd_kafka_queue_destroy(queue);
  rd_kafka_AdminOptions_destroy(options);
  rd_kafka_ConfigResource_destroy(resource);
  return policy;
}
