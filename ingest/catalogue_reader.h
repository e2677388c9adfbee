/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's consumer: partitions are taken by hand at offsets that the caller knows, never from the broker's
 * memory of a group, and every discontinuity is an event instead of a silent jump (auto.offset.reset=error). Reads
 * committed transactions only.
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

/* A record of the topic, or the news that a partition has been read to its end: then everything below `offset` was
 * handed out or will never be (markers, aborted transactions). Spans are valid until catalogue_reader_release(). */
struct catalogue_record {
  bool is_end;
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone */
  struct span value;
  struct span content_type;
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms;
};

/* A digest of key and value, for recognising a record later. */
uint64_t catalogue_record_digest(const struct catalogue_record *record);

err_t catalogue_reader_open(const struct kafka_layers *layers, const char *topic, struct catalogue_reader **out);
void catalogue_reader_close(struct catalogue_reader **r);

/* Close in the background: after a topic was deleted, closing may take long, and another reader can be opened
 * meanwhile. */
void catalogue_reader_abandon(struct catalogue_reader **r);

/* Id of the cluster, "" where the broker gives none; to be freed with mem_free(). Returns ERR_KAFKA_RETRY when no
 * broker answers in time. */
err_t catalogue_reader_cluster_id(struct catalogue_reader *r, int timeout_ms, char **out);

/* What the broker does with old records of the topic. Blocks: up to timeout_ms. */
struct topic_policy catalogue_reader_policy(struct catalogue_reader *r, int timeout_ms);

/* Number of partitions. Returns ERR_KAFKA_RETRY when the topic is missing or no broker answers in time. */
err_t catalogue_reader_n_partitions(struct catalogue_reader *r, int timeout_ms, int *out);

/* First offset of a partition's log, and the one behind its last committed record. Returns ERR_KAFKA_RETRY. */
err_t catalogue_reader_bounds(struct catalogue_reader *r, int32_t partition, int timeout_ms, int64_t *first,
                              int64_t *end);

/* Read a partition from an offset on. */
err_t catalogue_reader_assign(struct catalogue_reader *r, int32_t partition, int64_t offset);

/* The end of a partition's log, open transactions included, as the newest fetch has told; -1 when none has. Blocks: no.
 */
int64_t catalogue_reader_log_end(struct catalogue_reader *r, int32_t partition);

/* Give one partition up. */
void catalogue_reader_leave(struct catalogue_reader *r, int32_t partition);

/* Give all partitions up. */
void catalogue_reader_unassign(struct catalogue_reader *r);

/* What one poll brought besides records. */
struct catalogue_events {
  bool is_out_of_range; /* the offset asked for is not in the log of out_of_range_partition */
  int32_t out_of_range_partition;
  const char *reason;
  bool is_damaged; /* the broker's log cannot be read at damaged_offset (-1: it does not say where) */
  int32_t damaged_partition;
  int64_t damaged_offset;
  bool is_away; /* topic or brokers are gone: when they are back, the log may be another one */
};

/* Wait up to timeout_ms for a first record, then take what is there, up to max records, without waiting.
 *
 * records  [max], written from 0 on
 */
void catalogue_reader_poll(struct catalogue_reader *r, size_t max, int timeout_ms, struct catalogue_record *records,
                           size_t *n, struct catalogue_events *events);

/* Free the records of all polls since the last release. */
void catalogue_reader_release(struct catalogue_reader *r);

#endif
