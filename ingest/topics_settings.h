/* Topics with settings of their own. */
#ifndef INGEST_TOPICS_SETTINGS_H
#define INGEST_TOPICS_SETTINGS_H

#include "ingest/topics.h"

/* Create a topic as topics_create() does, with settings for the topic, such as cleanup.policy: compact.
 *
 * settings  apply where the topic is created here; a broker that creates topics by itself alone (the embedded one)
 *           knows no settings and chooses the number of partitions
 */
err_t topics_create_with(const struct kafka_layers *layers, const char *topic, int n_partitions,
                         const struct kafka_properties *settings, int timeout_ms, bool *is_created);

#endif
