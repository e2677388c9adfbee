/* SPDX-License-Identifier: Apache-2.0 */
/* The query topic's consumer: a member of a consumer group, so that several daemons share the queries. Offsets are
 * committed only for queries that were answered (offset_tracker.h): at least once, whatever happens.
 *
 * The group's events and the partitions' records come from two queues, so that the caller can poll without taking a
 * record: a member that does not poll for max.poll.interval.ms is thrown out of its group.
 *
 * Thread: the query reader, except where a function says any.
 */
#ifndef INGEST_QUERY_READER_H
#define INGEST_QUERY_READER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka_properties.h"
#include "ingest/offset_tracker.h"

struct query_reader;

/* A record of the topic. Spans are valid until the next poll. */
struct query_record {
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone, which is no query */
  struct span value;
  struct span content_type;
  int32_t partition;
  int64_t offset;
  uint32_t ticket; /* to be given to offset_tracker_done() once */
};

/* Open the consumer and join the group.
 *
 * tracker  each record is begun in it, and its committable offsets are committed. The reader shares it: closing the
 *          reader may take longer than its owner waits
 */
err_t query_reader_open(const struct kafka_layers *layers, const char *topic, const char *group,
                        struct offset_tracker *tracker, struct query_reader **out);

/* Commit what may be committed. Thread: the query reader, or any when that has ended. Blocks: for some seconds at
 * most. */
void query_reader_commit(struct query_reader *r);

/* Commit what may be committed and leave the group. */
void query_reader_close(struct query_reader **r);

/* Serve the group, commit now and then, and wait up to timeout_ms for one record.
 *
 * takes_record  false: records stay where they are, the rest is done all the same
 * has_record    whether one came
 *
 * Returns ERR_MEMORY; ERR_KAFKA when the client cannot go on. Blocks: up to timeout_ms; half a second more while the
 * topic is away. */
err_t query_reader_poll(struct query_reader *r, int timeout_ms, bool takes_record, bool *has_record,
                        struct query_record *out);

/* Whether the group has given this member its partitions (perhaps none) and the topic is there. Thread: any. */
bool query_reader_is_assigned(struct query_reader *r);

/* Whether the topic was deleted, or was never there. Thread: any. */
bool query_reader_is_topic_away(struct query_reader *r);

/* Rises when partitions are assigned. Records of an earlier number that were not done are read again, by this member or
 * by another. */
uint64_t query_reader_generation(const struct query_reader *r);

#endif
