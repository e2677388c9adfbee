/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of the catalogue topic. The caller assigns each partition at an offset that it knows; committed offsets
 * of a group are never used. A discontinuity is an event, never a silent jump (auto.offset.reset=error). Only committed
 * transactions are read.
 *
 * Thread: catalogue.
 */
#ifndef INGEST_CATALOGUE_READER_H
#define INGEST_CATALOGUE_READER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka_properties.h"
#include "ingest/topic_policy.h"

struct catalogue_reader;

/* A record of the topic, or a note that a partition was read to its end. Spans are valid until
 * catalogue_reader_release(). */
struct catalogue_record {
  bool is_end; /* no record: all records below `offset` were returned. Markers and aborted transactions never are */
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone */
  struct span value;
  struct span content_type;
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms;
};

/* Return a digest of key and value, to recognise the record later. */
uint64_t catalogue_record_digest(const struct catalogue_record *record);

/* Open a reader without any partitions. Does not wait for the broker. Returns ERR_CONFIG for a bad property. */
err_t catalogue_reader_open(const struct kafka_layers *layers, const char *topic, struct catalogue_reader **out);
void catalogue_reader_close(struct catalogue_reader **r);

/* Close in the background, without waiting. Closing may take long after a topic was deleted; another reader can be
 * opened meanwhile. */
void catalogue_reader_abandon(struct catalogue_reader **r);

/* Get the id of the cluster, "" if the broker has none. The caller frees it with mem_free(). Returns ERR_KAFKA_RETRY
 * when no broker answers in time. */
err_t catalogue_reader_cluster_id(struct catalogue_reader *r, int timeout_ms, char **out);

/* Ask how the broker treats old records of the topic. Blocks: up to timeout_ms. */
struct topic_policy catalogue_reader_policy(struct catalogue_reader *r, int timeout_ms);

/* Get the number of partitions. Returns ERR_KAFKA_RETRY when the topic is missing or no broker answers in time. */
err_t catalogue_reader_n_partitions(struct catalogue_reader *r, int timeout_ms, int *out);

/* Get the bounds of a partition's log: its first offset, and the offset after its last committed record. Returns
 * ERR_KAFKA_RETRY when the broker does not answer in time. */
err_t catalogue_reader_bounds(struct catalogue_reader *r, int32_t partition, int timeout_ms, int64_t *first,
                              int64_t *end);

/* Begin to read a partition at an offset. */
err_t catalogue_reader_assign(struct catalogue_reader *r, int32_t partition, int64_t offset);

/* Return the end of a partition's log, including open transactions, as of the newest fetch; -1 before the first fetch.
 * Blocks: no. */
int64_t catalogue_reader_log_end(struct catalogue_reader *r, int32_t partition);

/* Stop reading one partition. */
void catalogue_reader_leave(struct catalogue_reader *r, int32_t partition);

/* Stop reading all partitions. */
void catalogue_reader_unassign(struct catalogue_reader *r);

/* What one poll found besides records. */
struct catalogue_events {
  bool is_out_of_range; /* the next offset is outside the log of out_of_range_partition */
  int32_t out_of_range_partition;
  const char *reason;
  bool is_damaged; /* the broker's log cannot be read at damaged_offset; -1: the offset is unknown */
  int32_t damaged_partition;
  int64_t damaged_offset;
  bool is_away; /* the topic or all brokers are gone; when they are back, it may be another log */
};

/* Wait up to timeout_ms for a first record. Then take the records that have arrived, without waiting.
 *
 * records  [max]; the first *n are set
 * events   set
 */
void catalogue_reader_poll(struct catalogue_reader *r, size_t max, int timeout_ms, struct catalogue_record *records,
                           size_t *n, struct catalogue_events *events);

/* Free the records of all polls since the last release. */
void catalogue_reader_release(struct catalogue_reader *r);

#endif
