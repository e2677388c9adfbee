/* SPDX-License-Identifier: Apache-2.0 */
/* The merge thread: from the partials topic to the answers (docs/sharding.md).
 *
 * It keeps the parts of each query until every shard has answered, or until nobody waits any longer. Then it sends the
 * answer, the mark that the query is answered, and the group's positions, in one transaction. The positions are below
 * the first part of the oldest query that waits: a merge that dies leaves the others all they need.
 */
#ifndef DAEMON_MERGE_MERGE_THREAD_H
#define DAEMON_MERGE_MERGE_THREAD_H

#include "daemon/counters/counters.h"
#include "daemon/health/alarm.h"
#include "daemon/merge/merge_counters.h"
#include "daemon/merge/shards_heard.h"
#include "daemon/setup/kafka_setup.h"
#include "daemon/tracing/tracing.h"

struct merge_thread;

struct merge_thread_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct counters *counters;
  struct merge_counters *merge_counters;
  struct shards_heard *heard;
  struct alarm *alarm;
  struct tracing *tracing; /* NULL: there are no spans */
};

/* Open the producer, and start the thread. */
err_t merge_thread_open(const struct merge_thread_context *context, struct merge_thread **out);

/* Stop the thread, and leave the group. Queries that wait are left to other merges. */
void merge_thread_close(struct merge_thread **t);

/* Return why no queries are answered, as static text that can follow "not ready: "; NULL: they are. Thread: any. */
const char *merge_thread_not_ready(const struct merge_thread *t);

#endif
