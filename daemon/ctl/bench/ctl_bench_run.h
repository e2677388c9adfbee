/* SPDX-License-Identifier: Apache-2.0 */
/* The load of sluicectl bench: queries are sent when they are due, whether or not the daemon keeps up, and each answer
 * is timed from the moment when its query was due. So a pause of the daemon counts for every query that it delays.
 *
 * One thread sends, another one takes the answers.
 */
#ifndef DAEMON_CTL_CTL_BENCH_RUN_H
#define DAEMON_CTL_CTL_BENCH_RUN_H

#include "base/query.h"
#include "daemon/ctl/bench/ctl_bench_pool.h"
#include "daemon/ctl/ctl_context.h"

enum { CTL_BENCH_ERRORS = ANSWER_INTERNAL + 2 }; /* one for each code, the last for codes that are not in the schema */
enum { CTL_BENCH_LATE_NS = 1000000 };            /* a query that is sent this long after it was due is late */

/* What became of a query. */
enum ctl_bench_fate { CTL_BENCH_OPEN, CTL_BENCH_ANSWERED, CTL_BENCH_FAILED };

struct ctl_bench_sample {
  int64_t latency_ns; /* from when it was due until its answer was read */
  uint32_t queued_us; /* as the daemon has measured it */
  uint32_t searched_us;
  enum ctl_bench_fate fate;
};

struct ctl_bench_plan {
  double per_s;
  uint64_t n; /* queries to send */
  int64_t timeout_ms;
};

struct ctl_bench_result {
  struct ctl_bench_sample *samples; /* [n_sent] */
  uint64_t n_sent;
  uint64_t n_late;
  int64_t latest_ns;                   /* the largest time from due to sent */
  uint64_t n_undelivered;              /* that Kafka did not take */
  uint64_t n_errors[CTL_BENCH_ERRORS]; /* by enum answer_error */
  uint64_t n_twice;                    /* further answers to a query that has one */
  uint64_t n_unreadable;               /* values in the answer topic that are no answers */
  int64_t took_ns;                     /* from the first query until the last was sent */
  double reader_share;                 /* of a core, that taking answers needed */
  bool is_interrupted;
  char message[256]; /* of the first error, why a value is no answer, or why Kafka did not take a query; "" */
};

/* Send the queries and wait for the answers. One query is sent before all others, and waited for: it opens connections
 * and does not count. The first Ctrl-C ends sending; then answers are waited for at most a second more.
 *
 * Returns ERR_QUERY if nobody answers that first query; the errors of Kafka.
 */
err_t ctl_bench_run(struct ctl_context *ctx, const struct ctl_bench_pool *pool, const struct ctl_bench_plan *plan,
                    struct ctl_bench_result *out);
void ctl_bench_result_fini(struct ctl_bench_result *r);

#endif
