/* SPDX-License-Identifier: Apache-2.0 */
/* Where a group begins that starts at the end of the query topic. "The end" is another place at each assignment, so the
 * first one is committed. Otherwise a member that is killed before its first commit would skip the queries that were
 * written until it is back. Private to ingest/.
 */
#ifndef INGEST_QUERY_START_H
#define INGEST_QUERY_START_H

#include <librdkafka/rdkafka.h>

#include <stdbool.h>

/* Does a consumer of this configuration begin at the end of a partition in which its group has no position? */
bool query_start_is_end(const rd_kafka_conf_t *conf);

/* Prepare an assignment: commit the end of the partitions in which the group starts, and let those that were added to
 * the topic later begin at their beginning. If that fails, say so in the log, and leave the partitions as they are:
 * they begin at their end, which is another place the next time.
 *
 * may_start  false: the topic was away. In one that was created again, nothing is skipped
 *
 * Returns how many partitions the topic had when the group started, for query_start_mark(); 0: unknown. For a new
 * assignment, before it is taken. Blocks: for two requests where there are positions, and for 3 s at most. */
int query_start_prepare(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions, bool may_start);

/* Note in positions that will be committed how many partitions the topic had when the group started; 0: nothing. */
void query_start_mark(rd_kafka_topic_partition_list_t *list, int n_at_start);

#endif
