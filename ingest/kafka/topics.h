/* SPDX-License-Identifier: Apache-2.0 */
/* Creating topics, and counting their partitions. Thread: any. Blocks: up to timeout_ms. */
#ifndef INGEST_TOPICS_H
#define INGEST_TOPICS_H

#include "base/err.h"
#include "ingest/kafka/kafka_properties.h"

/* Create a topic.
 *
 * n_partitions  at least 1
 * settings      settings of the topic, such as cleanup.policy: compact; NULL or empty for none
 * is_created    false: the topic existed already, which is no error
 *
 * The embedded broker only creates topics by itself. It ignores settings and chooses the number of partitions.
 *
 * Returns ERR_OK; ERR_KAFKA or ERR_KAFKA_RETRY with the broker's reason.
 */
err_t topics_create(const struct kafka_layers *layers, const char *topic, int n_partitions,
                    const struct kafka_properties *settings, int timeout_ms, bool *is_created);

/* Get the number of partitions of a topic. Returns ERR_KAFKA_RETRY when the topic does not exist or no broker answers.
 */
err_t topics_count_partitions(const struct kafka_layers *layers, const char *topic, int timeout_ms, int *out);

#endif
