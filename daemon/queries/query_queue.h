/* SPDX-License-Identifier: Apache-2.0 */
/* From the query reader to the search workers: the pool of pending queries, and the queue in which they wait.
 *
 * The pool has a bound in queries and one in bytes. When one is reached the reader takes no more, and the topic holds
 * what comes. Which queries are searched next is fair_queue.h's business.
 *
 * Thread: any; the queue locks.
 */
#ifndef DAEMON_QUERIES_QUERY_QUEUE_H
#define DAEMON_QUERIES_QUERY_QUEUE_H

#include "daemon/queries/fair_queue.h"

struct query_queue;

/* memory_bytes  what all pending queries may take together */
err_t query_queue_open(const struct fair_queue_config *config, size_t memory_bytes, struct query_queue **out);
void query_queue_close(struct query_queue **q);

/* A pending query that is free: NULL when all are in use, or when those in use take the memory that they may. */
struct pending_query *query_queue_take_query(struct query_queue *q);

/* Count the memory of a query, once it is decoded. */
void query_queue_weigh(struct query_queue *q, struct pending_query *query);

/* Give it back: to be called for each query that is not finished with its batch. */
void query_queue_free_query(struct query_queue *q, struct pending_query *query);

/* Let it wait for a worker. */
void query_queue_push(struct query_queue *q, struct pending_query *query);

/* How long it would take until this query is answered, if it were pushed now. */
int64_t query_queue_estimate_ns(struct query_queue *q, const struct pending_query *query);

/* Take the next batch: waits for one. Returns false once the queue was ended and is empty, or its time is over. */
bool query_queue_pop(struct query_queue *q, struct query_batch *batch);

/* The batch has ended: its queries are free, and the next estimates know what it cost.
 *
 * n_searched  queries that were searched, in cost_ns together */
void query_queue_finish(struct query_queue *q, struct query_batch *batch, size_t n_searched, int64_t cost_ns);

/* Take all that wait for a worker away: a chain by `next`. */
struct pending_query *query_queue_take_all(struct query_queue *q);

/* No more will be pushed; what waits is still popped until end_ns (clock_now_ns()). */
void query_queue_end(struct query_queue *q, int64_t end_ns);

#endif
