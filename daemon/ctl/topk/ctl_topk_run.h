/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the queries of a file, a limited number at a time, and write each answer when it comes. Thread: one. */
#ifndef DAEMON_CTL_CTL_TOPK_RUN_H
#define DAEMON_CTL_CTL_TOPK_RUN_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/topk/ctl_topk_output.h"
#include "daemon/ctl/topk/ctl_topk_queries.h"

enum { CTL_TOPK_IN_FLIGHT_MAX = 100000 };

struct ctl_topk_plan {
  uint64_t n_in_flight; /* at most so many queries wait for their answers, and at most CTL_TOPK_IN_FLIGHT_MAX */
  uint64_t timeout_ms;  /* if no answer comes for so long, the run ends */
};

struct ctl_topk_result {
  bool has_begun; /* Kafka could be reached */
  uint64_t n_answered, n_failed;
  uint64_t n_known;   /* answers of an earlier run */
  uint64_t n_inexact; /* answers whose receipt does not say exact */
  int64_t took_ns;
  bool is_interrupted; /* some queries have not been asked, or have no answer */
};

/* Ask until all queries have answers or have failed, or Ctrl-C comes (ctl_interrupt.h). A query that fails is reported
 * and counted, and the others go on.
 *
 * Returns ERR_QUERY if no answer comes; the errors of Kafka and of the files. `out` is set then too.
 */
err_t ctl_topk_run(struct ctl_context *ctx, const struct ctl_topk_plan *plan, struct ctl_topk_queries *queries,
                   struct ctl_topk_output *output, struct ctl_topk_result *out);

#endif
