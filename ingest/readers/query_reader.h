/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of the query topic. It is a member of a consumer group, so several daemons can share the queries. An
 * offset is committed only when all queries below it are answered (offset_tracker.h), so each query is answered at
 * least once.
 *
 * The group's events and the partitions' records come from two queues. So the caller can poll without taking a record.
 * A member that does not poll for max.poll.interval.ms is removed from its group.
 *
 * Thread: the query reader, except where a function says any.
 */
#ifndef INGEST_QUERY_READER_H
#define INGEST_QUERY_READER_H

#include "base/err.h"
#include "ingest/kafka/kafka_properties.h"
#include "ingest/readers/offset_tracker.h"
#include "ingest/kafka/topic_record.h"
#include "ingest/kafka/trace_headers.h"

struct query_reader;

/* Bytes of a member's id: client.id, a hyphen and a UUID. Longer ones count as unknown. */
enum { QUERY_MEMBER_MAX = 255 };

/* A record of the topic. Valid until the next poll. */
struct query_record {
  struct topic_record record;
  struct trace_headers trace;
  uint32_t ticket; /* the caller passes it to offset_tracker_done() once */
};

/* Open the consumer. It joins the group, once that has forgotten the former member.
 *
 * former   id of the member that this one replaces, because its process was killed; "": none
 * tracker  each record begins a ticket in it, and its committable offsets are committed. The reader becomes an owner of
 *          it, because closing the reader may take longer than the caller waits
 */
err_t query_reader_open(const struct kafka_layers *layers, const char *topic, const char *group, const char *former,
                        struct offset_tracker *tracker, struct query_reader **out);

/* Return the id under which the group knows the reader, valid until the next poll; "": it does not know it yet. */
const char *query_reader_member(const struct query_reader *r);

/* Commit the committable offsets, leave the group and close the consumer. */
void query_reader_close(struct query_reader **r);

/* Have certificates changed since the reader was opened? Then another one should take over. */
bool query_reader_is_outdated(const struct query_reader *r);

/* A reader that stands by joins the group, but leaves the tracker to the one that it will replace: it commits nothing.
 * The caller takes no records from it. */
void query_reader_stand_by(struct query_reader *r, bool is_standby);

/* Prepare for another reader of this process to take over, which is open already, and shares the tracker. Once the
 * group takes the partitions back because the other one joins, the reader keeps them, and the group waits, until
 * query_reader_retire(). So the queries that were taken can be answered and committed before. */
void query_reader_keep_partitions(struct query_reader *r);

/* Does the group wait for the partitions that the reader keeps? */
bool query_reader_is_awaited(const struct query_reader *r);

/* Has the group let the reader in? It may still be without partitions. */
bool query_reader_is_member(const struct query_reader *r);

/* Give the group the partitions that it waits for, and join again: an ordinary rebalance. That happens in a later poll:
 * when the queries that were taken are answered and committed, or after a second. Without
 * query_reader_keep_partitions() it happens by itself. */
void query_reader_give_up(struct query_reader *r);

/* Commit the committable offsets, forget the others, and leave the group. Closes the reader in the background. NULL is
 * accepted. Thread: the query reader, or any after that has ended. Blocks: up to some seconds, for the commit. */
void query_reader_retire(struct query_reader **r);

/* Leave the group without a commit, and close in the background. The tracker is not touched. */
void query_reader_abandon(struct query_reader **r);

/* Serve the group's events, commit what is answered soon after, and wait up to timeout_ms for one record.
 *
 * takes_record  false: take no record, but do everything else
 * has_record    true if `out` has a record
 *
 * Returns ERR_OK; ERR_MEMORY; ERR_KAFKA when the client cannot continue. Blocks: up to timeout_ms, and up to half a
 * second more while the topic is away. */
err_t query_reader_poll(struct query_reader *r, int timeout_ms, bool takes_record, bool *has_record,
                        struct query_record *out);

/* Has the group assigned this member its partitions, perhaps none, and does the topic exist? Thread: any. */
bool query_reader_is_assigned(struct query_reader *r);

/* Is the topic missing, because it was deleted or never created? Thread: any. */
bool query_reader_is_topic_away(struct query_reader *r);

/* Return what the broker does not allow, as text that can follow "not ready: "; NULL: nothing. Thread: any. */
const char *query_reader_denied(struct query_reader *r);

/* Return the number of the assignment; it rises whenever partitions are assigned or given up. Records of an earlier
 * assignment that are not done are read again, by this member or another. While the topic is away it does not rise. */
uint64_t query_reader_generation(const struct query_reader *r);

#endif
