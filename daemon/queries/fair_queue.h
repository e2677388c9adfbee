/* SPDX-License-Identifier: Apache-2.0 */
/* Which queries are searched next: fair queueing between spaces, and between the methods of a space.
 *
 * A flow is the queries of a space, or its background queries. A class is what is in one flow, of one generation,
 * method and arguments, and takes one round or several. Only queries of one class are searched in one batch. The
 * queries of a class wait in the order of their arrival. Each flow has a virtual time: the time that its searches took,
 * divided by its weight. Each class has one too, within its flow. The flow with the smallest virtual time is next, and
 * in that flow the class with the smallest one. A flow or class that was idle starts at the virtual time of the newest
 * choice, so being idle earns no credit (start-time fair queueing, Goyal et al., 1996).
 *
 * All background queries together have a twentieth of the weight of the lightest space, and share it by the weights of
 * theirs. So they get all the time that others leave, and a little if those leave none: a query that is never answered
 * would keep its offset open. Their batches are short, because others may have to wait for the end of one.
 *
 * The cost of a query is a moving average of the time per query in batches of its class. A batch takes as many queries
 * as should take batch_time_ns together. A class that was never measured is searched one query at a time.
 *
 * A batch may take seconds, and short ones should not wait for it. So between the steps of a search, its worker asks
 * for a short batch that comes first, searches it, and goes on (fair_queue_pop_between). A batch is short if it should
 * take at most a quarter of the running one. It comes first if the virtual time of its flow and class is smaller, with
 * the running batch charged in advance. So short batches get their share of the time and no more: however many come,
 * the running batch gets its own.
 *
 * There is no clock and no lock in here: times are arguments, by clock_now_ns(). Thread: one at a time (query_queue.c
 * locks).
 */
#ifndef DAEMON_QUERIES_FAIR_QUEUE_H
#define DAEMON_QUERIES_FAIR_QUEUE_H

#include "daemon/queries/class_queues.h"

struct fair_queue_config {
  const uint32_t *weights; /* [n_spaces], each at least 1; borrowed */
  size_t n_spaces;
  size_t n_workers; /* batches that run at a time, at most */
  size_t n_queries; /* queries that wait at a time, at most */
  size_t max_batch; /* queries in a batch */
  int64_t batch_time_ns;
};

struct fair_queue;

err_t fair_queue_open(const struct fair_queue_config *config, struct fair_queue **out);
void fair_queue_close(struct fair_queue **f);

/* Queries that wait. */
size_t fair_queue_n(const struct fair_queue *f);

/* Add a query whose space, number and method are set. An idle class makes room if the class of the query is new. */
void fair_queue_push(struct fair_queue *f, struct pending_query *query);

/* Take the next batch and fill in every field of it; its array is the caller's. Returns false if no query waits. After
 * true the caller must call fair_queue_done(). */
bool fair_queue_pop(struct fair_queue *f, int64_t now_ns, struct query_batch *batch);

/* A running batch pauses between its steps. From now on, estimates count on that for all batches of its class. */
void fair_queue_note_pause(struct fair_queue *f, const struct query_batch *running);

/* Take a short batch that comes before the rest of a running one. Returns false if there is none, or if the running
 * batch was interrupted for a second longer than it was searched; else as fair_queue_pop(). */
bool fair_queue_pop_between(struct fair_queue *f, const struct query_batch *running, int64_t now_ns,
                            struct query_batch *batch);

/* The batch has ended.
 *
 * n        queries of the batch that were searched
 * cost_ns  time that they took together, without batches in between
 */
void fair_queue_done(struct fair_queue *f, const struct query_batch *batch, size_t n, int64_t cost_ns, int64_t now_ns);

/* Estimate how long it would take to answer a query that is pushed now: the batches that run, the waiting queries that
 * come first, and the query's own batch. A batch that a short one may interrupt counts nothing for it. If the class was
 * not searched for a second, its own cost counts as 0: one query may find out. */
int64_t fair_queue_estimate_ns(const struct fair_queue *f, const struct query_class *of, int64_t now_ns);

/* Take all queries that wait: a list linked by `next`. */
struct pending_query *fair_queue_take_all(struct fair_queue *f);

#endif
