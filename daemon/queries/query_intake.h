/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a record of the query topic: an error at once, a query for the workers, or one that waits for
 * at_least. Thread: query. */
#ifndef DAEMON_QUERIES_QUERY_INTAKE_H
#define DAEMON_QUERIES_QUERY_INTAKE_H

#include "base/age_watch.h"
#include "daemon/queries/at_least_list.h"
#include "daemon/queries/query_thread.h"
#include "ingest/readers/query_reader.h"

/* Most queries that are taken and not committed. One undelivered reply holds back the commits of all queries behind it.
 * The bound is below the default size of the producer's queue: that leaves room to refuse the queries that wait. */
enum { QUERY_INTAKE_HELD_MAX = 90000 };

struct query_intake {
  const struct query_thread_context *with;
  struct reply_context reply;
  struct query_queue *queue;
  struct age_watch ages; /* of the queries, when they are read */
  struct at_least_sources sources;
  struct at_least_list waiting; /* queries that wait for at_least */
  struct region scratch;
  struct region explain_scratch;
};

/* Make the intake of a thread. At most max_waiting queries, and half of query.memory_bytes, wait for at_least. The
 * caller keeps context and queue while it is used. */
void query_intake_init(const struct query_thread_context *context, struct query_queue *queue, size_t max_waiting,
                       struct query_intake *out);
void query_intake_fini(struct query_intake *in);

/* Decode and check a record, and answer it with an error, queue it, or let it wait. Takes over the pool's query.
 * Returns ERR_MEMORY. */
err_t query_intake_take(struct query_intake *in, const struct query_record *taken, struct pending_query *query);

/* Queue waiting queries whose at_least is reached, and refuse those that have waited too long. */
void query_intake_recheck(struct query_intake *in);

/* Drop the queries that no worker has begun: their assignment is over, and they are read again. */
void query_intake_drop(struct query_intake *in);

/* The daemon is stopping: refuse the queries that wait. */
void query_intake_refuse_waiting(struct query_intake *in);

#endif
