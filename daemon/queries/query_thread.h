/* SPDX-License-Identifier: Apache-2.0 */
/* The query reader thread: from the query topic to the search workers (docs/architecture.md, "Life of a query").
 *
 * It decodes and checks each query. What cannot be answered before its deadline is refused. A query with at_least waits
 * until the catalogue has seen those positions. The rest is queued for the workers (query_queue.h). The consumer is
 * polled even when there is no room for a query: otherwise the group would throw this daemon out.
 */
#ifndef DAEMON_QUERIES_QUERY_THREAD_H
#define DAEMON_QUERIES_QUERY_THREAD_H

#include "daemon/alarm.h"
#include "daemon/config/config.h"
#include "daemon/kafka_setup.h"
#include "daemon/queries/reply.h"
#include "engine/engine.h"

struct query_thread;

struct query_thread_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct delivery *delivery;
  struct offset_tracker *tracker;
  struct counters *counters;
  struct alarm *alarm;
};

/* Open the pools; consumer, workers and thread come with query_thread_start(). */
err_t query_thread_open(const struct query_thread_context *context, struct query_thread **out);

/* The catalogue has caught up: begin to read. Thread: main. */
err_t query_thread_start(struct query_thread *q);

/* Take no more queries and answer those that were accepted, for some seconds at most: what is left then stays
 * uncommitted, and another daemon answers it, or this one after its restart. */
void query_thread_stop(struct query_thread *q);

/* Commit what is delivered; to be called when they are stopped. Blocks: for some seconds at most. */
void query_thread_commit(struct query_thread *q);

void query_thread_close(struct query_thread **q);

/* Whether the consumer group has given this daemon its partitions and the topic is there. Thread: main. */
bool query_thread_is_assigned(const struct query_thread *q);

/* Whether the query topic is not there. Thread: main. */
bool query_thread_is_topic_away(const struct query_thread *q);

#endif
