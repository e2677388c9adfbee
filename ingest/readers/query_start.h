/* SPDX-License-Identifier: Apache-2.0 */
/* Where a group begins that starts at the end of the query topic. "The end" is another place at each assignment, so the
 * first one is committed. Otherwise a member that is killed before its first commit would skip the queries that were
 * written until it is back. Private to ingest/.
 */
#ifndef INGEST_QUERY_START_H
#define INGEST_QUERY_START_H

#include <librdkafka/rdkafka.h>

#include <stdbool.h>

/* Does the configuration say that a group starts at the end? Then take that out of it: librdkafka would go to the end
 * of any partition in which the group has no position, and skip queries in one that was added to the topic, and in a
 * topic that was created again. */
bool query_start_take_end(rd_kafka_conf_t *conf);

/* Commit the end of those partitions in which the group starts. If that fails, say so in the log; they are read from
 * their beginning then. For a new assignment, before it is taken. Blocks: for a request where there are positions, and
 * for 3 s at most. */
void query_start_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions);

#endif
