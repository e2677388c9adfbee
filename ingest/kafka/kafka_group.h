/* SPDX-License-Identifier: Apache-2.0 */
/* What members of a consumer group do alike: join it, and commit positions. Private to ingest/.
 *
 * Thread: the one that polls the consumer.
 */
#ifndef INGEST_KAFKA_GROUP_H
#define INGEST_KAFKA_GROUP_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"
#include "base/item.h"

/* Join the group for a topic, again if it was left. Returns ERR_KAFKA. */
err_t kafka_group_subscribe(rd_kafka_t *rk, const char *topic);

/* Has the group taken the consumer in? */
bool kafka_group_has_member(rd_kafka_t *rk);

/* Return positions in a topic as librdkafka's list. The caller destroys it. */
rd_kafka_topic_partition_list_t *kafka_group_offsets(const char *topic, const struct position *positions, size_t n);

/* Commit offsets, and wait up to timeout_ms for the group's answer; rd_kafka_commit() would wait for ever.
 *
 * Returns RD_KAFKA_RESP_ERR__TIMED_OUT when no answer came in time; the offsets may then be committed or not.
 */
rd_kafka_resp_err_t kafka_group_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, int timeout_ms);

#endif
