/* SPDX-License-Identifier: Apache-2.0 */
/* All queries of a file, searched by one method. */
#ifndef DAEMON_CTL_CTL_EVAL_RUN_H
#define DAEMON_CTL_CTL_EVAL_RUN_H

#include "daemon/ctl/ctl_eval_files.h"

struct eval_search {
  struct engine *engine;
  const struct eval_queries *queries;
  size_t k;
  size_t batch; /* queries searched together */
  size_t n_threads;
};

struct eval_timing {
  int64_t ns;    /* 0: this one was not searched */
  bool is_whole; /* as many queries as a batch has */
  bool is_warm;  /* not its thread's first */
};

/* What came of n queries. */
struct eval_answers {
  size_t n;
  size_t k;
  int64_t *ids;   /* [n][k] best first, behind the last hit -1 */
  float *scores;  /* [n][k] behind the last hit -inf */
  uint8_t *exact; /* [n] 1 where the list is proven to be exact */
  float *bound;   /* [n] nothing that was left out scores above; -inf where nothing was */
  size_t *n_hits; /* [n] */
  uint64_t *scored;
  uint64_t *candidates;
  struct eval_timing *timings; /* [n_timings] of searches */
  size_t n_timings;
};

/* Search all queries, batch by batch on n_threads threads. The answers do not depend on batch and threads. Where there
 * are few batches that take little time, they are searched again for their times alone.
 *
 * method  verified; text is what it was verified from
 * watch   ticks in the calling thread, with the number of queries
 *
 * Returns ERR_MEMORY, ERR_SYSTEM (no thread).
 */
err_t eval_run(const struct eval_search *search, const char *text, const struct method *method,
               const struct eval_watch *watch, struct eval_answers *out);
void eval_answers_fini(struct eval_answers *a);

#endif
