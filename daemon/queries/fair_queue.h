/* SPDX-License-Identifier: Apache-2.0 */
/* Which queries are searched next: fair queueing between the spaces, and between the methods of a space.
 *
 * A class is a space, a method and its arguments: what one batch can search. Its queries wait in order. Each space, and
 * each class in its space, has a virtual time: the time that it was searched for, divided by its weight. The space with
 * the smallest one is next, and in it the class with the smallest one. A space or class that was idle starts at the
 * virtual time of the newest choice: idleness saves nothing up (start-time fair queueing, Goyal et al., 1996).
 *
 * The cost of a query is a moving average of what batches of its class took for each query. A batch has as many
 * queries as are expected to take batch_time_ns together. A class that was never measured is searched one query at a
 * time.
 *
 * No clock and no lock: times are arguments, by clock_now_ns(). Thread: any, one at a time (query_queue.c locks).
 */
#ifndef DAEMON_QUERIES_FAIR_QUEUE_H
#define DAEMON_QUERIES_FAIR_QUEUE_H

#include "daemon/queries/pending_query.h"

struct fair_queue_config {
  const uint32_t *weights; /* [n_spaces], 1 or more; borrowed */
  size_t n_spaces;
  size_t n_workers; /* batches that run at once, at most */
  size_t n_queries; /* queries that wait at once, at most */
  size_t max_batch; /* queries of a batch, at most */
  int64_t batch_time_ns;
};

struct fair_queue;

err_t fair_queue_open(const struct fair_queue_config *config, struct fair_queue **out);
void fair_queue_close(struct fair_queue **f);

/* Queries that wait. */
size_t fair_queue_n(const struct fair_queue *f);

/* Add a query whose space and method are known. Classes that are idle make room for new ones. */
void fair_queue_push(struct fair_queue *f, struct pending_query *query);

/* Take the next batch: fills all fields of the batch, whose array the caller owns. Returns whether there was one; then
 * fair_queue_done() has to follow. */
bool fair_queue_pop(struct fair_queue *f, int64_t now_ns, struct query_batch *batch);

/* The batch has ended: `n` of its queries were searched, in cost_ns together. */
void fair_queue_done(struct fair_queue *f, const struct query_batch *batch, size_t n, int64_t cost_ns, int64_t now_ns);

/* How long it would take until a query is answered that is pushed now: what runs, what waits and is due before it, and
 * its own batch. A class that was not searched for a second counts nothing for itself: one query may find out. */
int64_t fair_queue_estimate_ns(const struct fair_queue *f, size_t space, const struct method *method, int64_t now_ns);

/* Take all that wait away: a chain by `next`. */
struct pending_query *fair_queue_take_all(struct fair_queue *f);

#endif
