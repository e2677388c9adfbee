/* SPDX-License-Identifier: Apache-2.0 */
/* All sections of Kafka properties and all topics that a configuration has, for what must not forget one. */
#ifndef DAEMON_CONFIG_CONFIG_KAFKA_H
#define DAEMON_CONFIG_CONFIG_KAFKA_H

#include "daemon/config/config.h"

/* The first section is that of all clients. From CONFIG_KAFKA_CLIENTS on, each is of one kind of client. */
enum { CONFIG_KAFKA_CLIENTS = 1, CONFIG_KAFKA_SECTIONS = 5, CONFIG_KAFKA_TOPICS = 9 };

struct config_kafka_section {
  const char *path;
  size_t offset;    /* of its properties in struct config */
  bool is_consumer; /* its clients read */
};

extern const struct config_kafka_section config_kafka_sections[CONFIG_KAFKA_SECTIONS];

struct config_kafka_topic {
  const char *path;
  size_t offset;
  bool is_for_shards; /* daemons with the whole catalogue do not use it */
  bool is_ordered;    /* its records have an order: it has one partition */
};

extern const struct config_kafka_topic config_kafka_topics[CONFIG_KAFKA_TOPICS];

static inline const struct kafka_properties *config_kafka_properties(const struct config *c, size_t section)
{
  return (const struct kafka_properties *)((const char *)c + config_kafka_sections[section].offset);
}

/* Return the name of a topic; "": there is none. */
static inline const char *config_kafka_topic_name(const struct config *c, size_t topic)
{
  return *(char *const *)((const char *)c + config_kafka_topics[topic].offset);
}

#endif
