/* SPDX-License-Identifier: Apache-2.0 */
/* Search all queries of a file with one method, on several threads. */
#ifndef DAEMON_CTL_CTL_EVAL_RUN_H
#define DAEMON_CTL_CTL_EVAL_RUN_H

#include "daemon/ctl/eval/ctl_eval_files.h"

struct ctl_eval_search {
  struct engine *engine;
  const struct ctl_eval_queries *queries;
  size_t k;     /* hits of a query that were asked for */
  size_t width; /* that it can have: not more than there are items */
  size_t batch; /* queries searched together */
  size_t n_threads;
};

struct ctl_eval_timing {
  int64_t ns;    /* time of the batch; 0: it was not searched */
  bool is_whole; /* the batch was full */
  bool is_warm;  /* it was not the first of its thread */
};

/* The answers to n queries, and how long batches took. */
struct ctl_eval_answers {
  size_t n;
  size_t k;       /* hits that were asked for */
  size_t width;   /* hits that there can be: k may be far above the number of items */
  int64_t *ids;   /* [n][width] best first; short rows are padded with -1 */
  float *scores;  /* [n][width] short rows are padded with -inf */
  uint8_t *exact; /* [n] 1 if the answer is proven exact */
  float *bound;   /* [n] no item that is not a hit scores above it; -inf if all items are hits */
  size_t *n_hits; /* [n] */
  uint64_t *scored;
  uint64_t *candidates;
  bool has_admitted;               /* the next field is known */
  uint64_t admitted;               /* items that the filter admits: the same for all queries */
  struct ctl_eval_timing *timings; /* [n_timings] one for each batch searched */
  size_t n_timings;
};

/* Search all queries, batch by batch on n_threads threads. The answers do not depend on batch size and threads. If
 * there are few batches and they take little time, they are searched again to measure their times.
 *
 * method  verified method
 * text    the text that it was verified from
 * watch   called in the calling thread, with the number of queries done
 *
 * Returns ERR_MEMORY, ERR_SYSTEM (no thread).
 */
err_t ctl_eval_run(const struct ctl_eval_search *search, const char *text, const struct method *method,
                   const struct ctl_eval_watch *watch, struct ctl_eval_answers *out);
void ctl_eval_answers_fini(struct ctl_eval_answers *a);

#endif
