/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow thread: it compares generations by queries that have been answered already.
 *
 * Search workers offer each answered query. The thread takes those that the board wants, if there is room: it has few
 * places, and begins a comparison only while no query waits for a worker. So it delays no answer, and when the daemon
 * is busy it compares less.
 *
 * A query that was taken stays in the memory of the queue's pool, and returns there when it was compared.
 */
#ifndef DAEMON_QUERIES_SHADOW_THREAD_H
#define DAEMON_QUERIES_SHADOW_THREAD_H

#include "daemon/counters/counters.h"
#include "daemon/queries/query_queue.h"
#include "daemon/queries/seen_sets.h"
#include "daemon/setup/kafka_setup.h"
#include "daemon/shadow/shadow_board.h"
#include "engine/engine.h"

/* Queries that wait to be compared: so many, and so much of the memory of all queries. */
enum { SHADOW_WAITING_MAX = 64, SHADOW_MEMORY_SHARE = 16 };

struct shadow_thread;

/* Everything outlives the thread. */
struct shadow_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct query_queue *queue;
  struct shadow_board *board;
  struct seen_sets *seen; /* NULL: there is no seen topic */
  struct counters *counters;
};

/* Start the thread. */
err_t shadow_thread_open(const struct shadow_context *context, struct shadow_thread **out);

/* Let it begin no further search. Returns at once. */
void shadow_thread_ask_to_stop(struct shadow_thread *t);

/* End it after its current search. Queries that wait are dropped. */
void shadow_thread_close(struct shadow_thread **t);

/* Offer a query that was answered. Returns true if it was taken: it is no longer the caller's. Thread: any. Blocks: no.
 * Allocates: no. */
bool shadow_thread_offer(struct shadow_thread *t, struct pending_query *query);

#endif
