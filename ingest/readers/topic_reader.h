/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that reads a whole topic, without joining a consumer group. The caller assigns each partition at an offset
 * that it knows. A discontinuity is an event, never a silent jump (auto.offset.reset=error). Only committed
 * transactions are read.
 *
 * Thread: the one that opened it.
 */
#ifndef INGEST_TOPIC_READER_H
#define INGEST_TOPIC_READER_H

#include "base/err.h"
#include "base/item.h"
#include "ingest/kafka/kafka_properties.h"
#include "ingest/kafka/topic_policy.h"
#include "ingest/kafka/topic_record.h"
#include "ingest/readers/topic_events.h"

struct topic_reader;

/* Open a reader without any partitions. Does not wait for the broker. Returns ERR_CONFIG for a bad property. */
err_t topic_reader_open(const struct kafka_layers *layers, const char *topic, struct topic_reader **out);
void topic_reader_close(struct topic_reader **r);

/* Open a reader as before, with properties that were good then. Returns ERR_KAFKA_RETRY if they are not now: a
 * certificate and its key do not fit while they are being written one after the other. */
err_t topic_reader_open_again(const struct kafka_layers *layers, const char *topic, struct topic_reader **out);

/* Close in the background, without waiting. Closing may take long after a topic was deleted; another reader can be
 * opened meanwhile. */
void topic_reader_abandon(struct topic_reader **r);

/* Have certificates changed since the reader was opened? Then another one should take over. */
bool topic_reader_is_outdated(const struct topic_reader *r);

/* Let the client's threads stand back behind every other thread of the machine (SCHED_IDLE), or not any more. Call it
 * only where base/stand_back.h says that a thread can return. A call that waits for a broker ends it. Blocks: no. */
void topic_reader_stand_back(struct topic_reader *r, bool stands_back);

/* Get the id of the cluster, "" if the broker has none. The caller frees it with mem_free(). Returns ERR_KAFKA_RETRY
 * when no broker answers in time, or earlier when it is known why none can be used. */
err_t topic_reader_cluster_id(struct topic_reader *r, int timeout_ms, char **out);

/* Ask how the broker treats old records of the topic. Blocks: up to timeout_ms. */
struct topic_policy topic_reader_policy(struct topic_reader *r, int timeout_ms);

/* Get the number of partitions. Returns ERR_KAFKA_TOPIC when the topic is missing; ERR_KAFKA_DENIED when we may not see
 * it; ERR_KAFKA_RETRY when no broker answers in time. */
err_t topic_reader_n_partitions(struct topic_reader *r, int timeout_ms, int *out);

/* Get the bounds of a partition's log: its first offset, and the offset after its last committed record. Returns
 * ERR_KAFKA_RETRY when the broker does not answer in time. */
err_t topic_reader_bounds(struct topic_reader *r, int32_t partition, int timeout_ms, int64_t *first, int64_t *end);

/* Begin to read a partition at an offset. */
err_t topic_reader_assign(struct topic_reader *r, int32_t partition, int64_t offset);

/* Return the end of a partition's log, including open transactions, as of the newest fetch; -1 before the first fetch.
 * Blocks: no. */
int64_t topic_reader_log_end(struct topic_reader *r, int32_t partition);

/* Begin to commit positions to the group, for Kafka's tools: nothing here ever reads them. An error is logged. Returns
 * false if it could not begin, as while the broker has not answered the last commit: try again. Blocks: no. */
bool topic_reader_commit(struct topic_reader *r, const struct position *positions, size_t n);

/* Has the broker refused a commit since this was last asked? Blocks: no. */
bool topic_reader_take_refusal(struct topic_reader *r);

/* Stop reading one partition. */
void topic_reader_leave(struct topic_reader *r, int32_t partition);

/* Stop reading all partitions. */
void topic_reader_unassign(struct topic_reader *r);

/* Wait up to timeout_ms for a first record. Then take the records that have arrived, without waiting.
 *
 * records  [max]; the first *n are set
 * events   set
 */
void topic_reader_poll(struct topic_reader *r, size_t max, int timeout_ms, struct topic_record *records, size_t *n,
                       struct topic_events *events);

/* Return the number of records that were polled and not released. */
size_t topic_reader_n_held(const struct topic_reader *r);

/* Free the oldest n of them. */
void topic_reader_release(struct topic_reader *r, size_t n);
void topic_reader_release_all(struct topic_reader *r);

#endif
