/* SPDX-License-Identifier: Apache-2.0 */
/* From the query thread to the search workers: a pool of pending queries, and the queue in which they wait for a
 * worker.
 *
 * The pool is bounded in queries and in bytes. At either bound the query thread takes no more records: they stay in the
 * topic. fair_queue.h decides which queries are searched next.
 *
 * Thread: any; the queue locks.
 */
#ifndef DAEMON_QUERIES_QUERY_QUEUE_H
#define DAEMON_QUERIES_QUERY_QUEUE_H

#include "daemon/queries/fair_queue.h"

struct query_queue;

/* memory_bytes  bound on the memory of all pending queries together */
err_t query_queue_open(const struct fair_queue_config *config, size_t memory_bytes, struct query_queue **out);
void query_queue_close(struct query_queue **q);

/* Take a free query from the pool. Returns NULL if all are in use or the memory bound is reached. */
struct pending_query *query_queue_take_query(struct query_queue *q);

/* Count a decoded query as one of the background, until it is given back. Returns false if those have their share of
 * the pool: the others could not be read any more if they had all of it. */
bool query_queue_take_background(struct query_queue *q, struct pending_query *query);

/* Count the memory of a query, once it is decoded. */
void query_queue_weigh(struct query_queue *q, struct pending_query *query);

/* Give a query back to the pool. Queries of a batch are given back by query_queue_finish(). */
void query_queue_free_query(struct query_queue *q, struct pending_query *query);

/* Add a query to those that wait for a worker. A trial, of which there is one at a time, is searched when no other
 * query waits. */
void query_queue_push(struct query_queue *q, struct pending_query *query);

/* How many queries wait for a worker? Thread: any. Blocks: no. */
size_t query_queue_n_waiting(const struct query_queue *q);

/* Estimate how long it would take to answer this query if it were pushed now. */
int64_t query_queue_estimate_ns(struct query_queue *q, const struct pending_query *query);

/* Wait for the next batch and take it. Returns false once the queue has been ended and is empty, or its time is up. */
bool query_queue_pop(struct query_queue *q, struct query_batch *batch);

/* A running batch pauses between its steps (fair_queue.h). Call it once for a batch. */
void query_queue_note_pause(struct query_queue *q, const struct query_batch *running);

/* Take a short batch that comes before the rest of a running one (fair_queue.h), if there is one. Call it between the
 * steps of a search: it costs next to nothing while no query waits. After true, call query_queue_finish() for it. */
bool query_queue_pop_between(struct query_queue *q, const struct query_batch *running, struct query_batch *batch);

/* The batch has ended: free its queries, and let its cost count in the next estimates.
 *
 * n_searched  queries that were searched
 * cost_ns     time that they took together, without batches in between
 */
void query_queue_finish(struct query_queue *q, struct query_batch *batch, size_t n_searched, int64_t cost_ns);

/* Free the trial if no worker has taken it. Returns false if there is none. */
bool query_queue_withdraw_trial(struct query_queue *q);

/* Take all queries that wait for a worker: a list linked by `next`. The trial stays. */
struct pending_query *query_queue_take_all(struct query_queue *q);

/* End the queue: the reader pushes nothing any more, and batches can be popped until end_ns (clock_now_ns()). Workers
 * may still push queries again. */
void query_queue_end(struct query_queue *q, int64_t end_ns);

#endif
