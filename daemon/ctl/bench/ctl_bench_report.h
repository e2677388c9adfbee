/* SPDX-License-Identifier: Apache-2.0 */
/* What sluicectl bench has measured: percentiles, a histogram, and what to know before one believes them. */
#ifndef DAEMON_CTL_CTL_BENCH_REPORT_H
#define DAEMON_CTL_CTL_BENCH_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/ctl/bench/ctl_bench_run.h"

enum { CTL_BENCH_BINS = 20, CTL_BENCH_PERCENTILES = 5 };

/* p50, p90, p99, p99.9 and the largest. */
extern const struct ctl_bench_percentile {
  const char *name;
  double share;
} ctl_bench_percentiles[CTL_BENCH_PERCENTILES];

/* How many latencies are in each of the bins, which are equally wide on a logarithmic axis. */
struct ctl_bench_histogram {
  double least_ns; /* lower end of the first bin */
  double factor;   /* from one end of a bin to the other */
  uint64_t counts[CTL_BENCH_BINS];
  size_t n_bins;
};

struct ctl_bench_report {
  uint64_t n_sent, n_answered, n_errors, n_missing;
  int64_t latency_ns[CTL_BENCH_PERCENTILES]; /* of the answers without an error; 0 if there are none */
  int64_t queued_ns[CTL_BENCH_PERCENTILES];  /* as the daemon has measured it */
  int64_t searched_ns[CTL_BENCH_PERCENTILES];
  struct ctl_bench_histogram histogram;
};

/* Returns ERR_MEMORY. */
err_t ctl_bench_report_make(const struct ctl_bench_result *result, struct ctl_bench_report *out);

/* What was asked, for the head of the report. */
struct ctl_bench_setting {
  const char *space;   /* NULL: each query names its own */
  const char *method;  /* NULL: exact */
  json_t *fields;      /* that all queries have; NULL: none */
  const char *queries; /* their file; NULL: random ones */
  uint64_t k;
  size_t n_queries; /* of the pool */
  uint64_t seed;
  double per_s;
};

void ctl_bench_report_print(const struct ctl_bench_report *report, const struct ctl_bench_result *result,
                            const struct ctl_bench_setting *setting, FILE *out);

/* Print one JSON object on a line. Durations are in microseconds. */
void ctl_bench_report_print_json(const struct ctl_bench_report *report, const struct ctl_bench_result *result,
                                 const struct ctl_bench_setting *setting, FILE *out);

/* Was sluicectl itself the limit, so that the daemon got less load than was asked for? Returns the words for a warning;
 * NULL: no. */
const char *ctl_bench_report_doubt(const struct ctl_bench_result *result, char *text, size_t size);

#endif
