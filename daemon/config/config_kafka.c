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
  { "catalogue.topic", AT(catalogue.topic) },
  { "catalogue.dead_letter_topic", AT(catalogue.dead_letter_topic) },
  { "query.topic", AT(query.topic) },
  { "query.answer_topic", AT(query.answer_topic) },
  { "query.partials_topic", AT(query.partials_topic) },
  { "seen.topic", AT(seen.topic) },
  { "models.topic", AT(models.topic) },
  { "models.files_topic", AT(models.files_topic) },
  { "models.shadow_topic", AT(models.shadow_topic) },
};
