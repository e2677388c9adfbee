/* SPDX-License-Identifier: Apache-2.0 */
/* The query thread: from the query topic to the search workers (docs/architecture.md, "Life of a query").
 *
 * It decodes and checks each query. A query that cannot be answered before its deadline is refused. A query with
 * at_least or exclude_seen_by waits until the catalogue and the seen topic were read that far. All others are queued
 * for the workers (query_queue.h). The thread polls the consumer even when there is no room for a query: otherwise the
 * consumer group would expel this daemon.
 */
#ifndef DAEMON_QUERIES_QUERY_THREAD_H
#define DAEMON_QUERIES_QUERY_THREAD_H

#include "daemon/config/config.h"
#include "daemon/counters/search_counters.h"
#include "daemon/health/alarm.h"
#include "daemon/models/switch_board.h"
#include "daemon/queries/reply.h"
#include "daemon/queries/trial.h"
#include "daemon/seen/seen.h"
#include "daemon/setup/kafka_setup.h"
#include "daemon/shadow/shadow_board.h"
#include "daemon/tracing/tracing.h"
#include "engine/engine.h"

struct query_thread;

struct query_thread_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct seen *seen; /* NULL: no seen topic is read */
  struct delivery *delivery;
  struct offset_tracker *tracker;
  struct counters *counters;
  struct alarm *alarm;
  struct tracing *tracing;       /* NULL: there are no spans */
  bool has_trials;               /* the status page may try queries */
  struct shadow_board *shadows;  /* NULL: there are no generations to compare */
  struct switch_board *switches; /* NULL: this is no shard, or it has no generations */
};

/* Open the pool of queries. Returns ERR_CONFIG when the consumer could not be opened with its properties. */
err_t query_thread_open(const struct query_thread_context *context, struct query_thread **out);

/* Open the consumer, which joins the group: the catalogue has caught up.
 *
 * is_open  set; false: its certificate and key do not fit, which is logged. Try again: they may be being written
 *
 * Thread: main. */
err_t query_thread_join(struct query_thread *t, bool *is_open);

/* Open the workers and the thread, after query_thread_join(). Thread: main. */
err_t query_thread_start(struct query_thread *t);

/* Take no more queries, and answer the accepted ones for a few seconds at most. The rest stay uncommitted: another
 * daemon answers them, or this one after a restart. */
void query_thread_stop(struct query_thread *t);

/* Commit the offsets of delivered replies and leave the group, after query_thread_stop(). The other daemons take over.
 * Nothing else may look at the consumer. Blocks: for a few seconds at most. */
void query_thread_leave(struct query_thread *t);

/* End the thread that compares generations, after query_thread_stop(). Blocks: until its search has ended. It has a low
 * priority, so leave the group first. */
void query_thread_end_comparing(struct query_thread *t);

void query_thread_close(struct query_thread **t);

/* Has the consumer group given this daemon its partitions, and does the topic exist? Thread: main. */
bool query_thread_is_assigned(struct query_thread *t);

/* What tries queries; NULL: nothing does. It lives as long as the query thread. */
struct trial *query_thread_trial(const struct query_thread *t);

/* The counters of all searches. They live as long as the query thread. Thread: any. */
const struct search_counters *query_thread_counters(const struct query_thread *t);

/* Is the query topic missing? Thread: main. */
bool query_thread_is_topic_away(struct query_thread *t);

/* See query_reader_denied(); before there is a consumer, why it cannot be opened. Thread: main. */
const char *query_thread_denied(struct query_thread *t);

#endif
