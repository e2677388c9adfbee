/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of sections and topics. */
#include "daemon/config/config_kafka.h"

#include <stddef.h>

#define AT(field) offsetof(struct config, field)

const struct config_kafka_section config_kafka_sections[CONFIG_KAFKA_SECTIONS] = {
  { "kafka", AT(kafka), false },
  { "catalogue.kafka", AT(catalogue.kafka), true },
  { "query.kafka", AT(query.kafka), true },
  { "query.answer_kafka", AT(query.answer_kafka), false },
  { "seen.kafka", AT(seen.kafka), true },
};

const struct config_kafka_topic config_kafka_topics[CONFIG_KAFKA_TOPICS] = {
  { .path = "catalogue.topic", .offset = AT(catalogue.topic) },
  { .path = "catalogue.dead_letter_topic", .offset = AT(catalogue.dead_letter_topic) },
  { .path = "query.topic", .offset = AT(query.topic) },
  { .path = "query.answer_topic", .offset = AT(query.answer_topic) },
  { .path = "query.partials_topic", .offset = AT(query.partials_topic), .is_for_shards = true },
  { .path = "seen.topic", .offset = AT(seen.topic) },
  { .path = "models.topic", .offset = AT(models.topic), .is_ordered = true },
  { .path = "models.files_topic", .offset = AT(models.files_topic) },
  { .path = "models.shadow_topic", .offset = AT(models.shadow_topic) },
};
