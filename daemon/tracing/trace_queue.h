/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of records of traced queries, and the queue of those whose spans can be exported.
 *
 * The pool is the bound: a record is taken when a query is read, and comes back when its spans are sent or dropped. So
 * there is always room in the queue. Queries hold the lock for a few instructions, the exporter for some microseconds,
 * while it takes a batch.
 *
 * Thread: any; the queue locks.
 */
#ifndef DAEMON_TRACING_TRACE_QUEUE_H
#define DAEMON_TRACING_TRACE_QUEUE_H

#include "base/err.h"
#include "daemon/tracing/query_trace.h"

struct trace_queue;

/* n_traces  records in the pool */
err_t trace_queue_open(size_t n_traces, struct trace_queue **out);

/* Close the queue with all records, wherever they are. */
void trace_queue_close(struct trace_queue **q);

/* Take a record of zeros from the pool. Returns NULL if all are in use. */
struct query_trace *trace_queue_take(struct trace_queue *q);

/* Give a list of records back. */
void trace_queue_put(struct trace_queue *q, struct query_trace *list);

/* Add a record to those that can be exported. */
void trace_queue_push(struct trace_queue *q, struct query_trace *trace);

/* Wait until there are n records to export, for timeout_ms at most, or until trace_queue_end(). */
void trace_queue_wait(struct trace_queue *q, size_t n, int64_t timeout_ms);

/* Take up to n records, the oldest first. Returns a list, NULL: there are none. */
struct query_trace *trace_queue_pop(struct trace_queue *q, size_t n);

/* From now on, trace_queue_wait() returns at once. */
void trace_queue_end(struct trace_queue *q);

#endif
