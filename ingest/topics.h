/* SPDX-License-Identifier: Apache-2.0 */
/* Topics: make them, and count their partitions. Thread: any. Blocks: up to timeout_ms. */
#ifndef INGEST_TOPICS_H
#define INGEST_TOPICS_H

#include "base/err.h"
#include "ingest/kafka_properties.h"

/* Create a topic.
 *
 * n_partitions  at least 1
 * settings      of the topic, such as cleanup.policy: compact; empty for none. A broker that creates topics by itself
 * alone (the embedded one) takes no settings and chooses the number of partitions is_created    false: it was there
 * already, which is no error
 *
 * Returns ERR_KAFKA or ERR_KAFKA_RETRY with the broker's reason.
 */
err_t topics_create(const struct kafka_layers *layers, const char *topic, int n_partitions,
                    const struct kafka_properties *settings, int timeout_ms, bool *is_created);

/* Number of partitions of a topic. Returns ERR_KAFKA_RETRY when the topic is not there or the broker does not answer.
 */
err_t topics_count_partitions(const struct kafka_layers *layers, const char *topic, int timeout_ms, int *out);

#endif
