/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until the consumer group has forgotten a member that was killed.
 *
 * A rebalance waits for all members, and a killed one is a member until its session times out. So a daemon that is
 * back at once and joins would stop the queries of all daemons until then. Private to ingest/.
 *
 * Thread: the query reader.
 */
#ifndef INGEST_FORMER_MEMBER_H
#define INGEST_FORMER_MEMBER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "ingest/readers/query_reader.h"

/* All zeros: nobody is waited for. */
struct former_member {
  char id[QUERY_MEMBER_MAX + 1];
  int64_t until_ns; /* its session has timed out by then */
  int64_t due_ns;   /* when to look again */
};

/* Begin to wait for a member's end. */
void former_member_begin(struct former_member *f, const char *id, rd_kafka_t *rk);

/* Is the member waited for? Looks from time to time whether it is gone. A group that must not be described is not
 * waited for. Blocks: up to half a second, while brokers are away. */
bool former_member_is_there(struct former_member *f, rd_kafka_t *rk, const char *group, int64_t now_ns);

#endif
