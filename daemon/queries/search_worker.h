/* SPDX-License-Identifier: Apache-2.0 */
/* Search workers: threads that take batches from the queue, search each in one epoch and reply. */
#ifndef DAEMON_QUERIES_SEARCH_WORKER_H
#define DAEMON_QUERIES_SEARCH_WORKER_H

#include "daemon/counters/search_counters.h"
#include "daemon/health/alarm.h"
#include "daemon/models/switch_board.h"
#include "daemon/queries/reply.h"
#include "daemon/seen/seen.h"
#include "daemon/shadow/shadow_board.h"
#include "engine/engine.h"

struct search_workers;

/* What the workers share. Everything outlives them. */
struct search_context {
  struct engine *engine;
  struct query_queue *queue;
  const struct reply_context *reply;       /* copied */
  struct search_counters *search_counters; /* they count their searches here */
  struct alarm *alarm;
  size_t max_batch;
  struct seen *seen;             /* NULL: no query excludes what a user has seen */
  struct shadow_board *shadows;  /* NULL: there are no generations to compare */
  struct switch_board *switches; /* see query_check() */
  const struct kafka_setup *kafka;
};

/* Start n workers. A worker whose engine cannot go on raises the alarm. `*out` is written even on error:
 * search_workers_close() then joins the workers that were started. */
err_t search_workers_open(size_t n, const struct search_context *context, struct search_workers **out);

/* Wait for the workers. They end once the queue has been ended and is empty, or its time is up. What compares
 * generations begins no further search. */
void search_workers_stop(struct search_workers *w);

/* Stop the workers, and wait until the search of a comparison has ended. */
void search_workers_close(struct search_workers **w);

#endif
