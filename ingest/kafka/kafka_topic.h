/* SPDX-License-Identifier: Apache-2.0 */
/* What brokers say of one topic, to a client that is there already. Private to ingest/.
 *
 * Thread: any. Blocks: up to timeout_ms.
 */
#ifndef INGEST_KAFKA_TOPIC_H
#define INGEST_KAFKA_TOPIC_H

#include <librdkafka/rdkafka.h>

#include <stdbool.h>

/* Ask for the number of partitions; 0: the topic is there, but none of them is ready. Writes `out` on success. */
rd_kafka_resp_err_t kafka_topic_n_partitions(rd_kafka_t *rk, const char *topic, int timeout_ms, int *out);

/* Ask for the bounds of a partition: its first offset, and the offset after its last record, for a client that reads
 * committed records after the last committed one. Both are written on success.
 *
 * rd_kafka_query_watermark_offsets() does the same, but waits without a limit while the partition's leader does not
 * answer. */
rd_kafka_resp_err_t kafka_topic_bounds(rd_kafka_t *rk, const char *topic, int32_t partition, int timeout_ms,
                                       int64_t *first, int64_t *end);

/* Has the broker this topic, with partitions? */
bool kafka_topic_is_there(rd_kafka_t *rk, const char *topic, int timeout_ms);

/* Ask for the metadata of a topic, which name the brokers, too. The caller destroys them with
 * rd_kafka_metadata_destroy(). */
rd_kafka_resp_err_t kafka_topic_metadata(rd_kafka_t *rk, const char *topic, int timeout_ms,
                                         const struct rd_kafka_metadata **out);

/* Is the controller among the brokers of these metadata? The embedded broker names one that does not exist, and a
 * request to it would time out. */
bool kafka_topic_has_controller(rd_kafka_t *rk, const struct rd_kafka_metadata *metadata, int timeout_ms);

#endif
