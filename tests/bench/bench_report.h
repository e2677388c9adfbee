/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a benchmark: a table for people, JSON lines for programs, or Markdown for docs/benchmarks. */
#ifndef TESTS_BENCH_BENCH_REPORT_H
#define TESTS_BENCH_BENCH_REPORT_H

#include "tests/bench/bench_options.h"

enum bench_verdict { VERDICT_UNCHECKED, VERDICT_NOT_EXACT, VERDICT_EXACT };

/* Numbers that do not apply are 0, and such texts NULL. */
struct bench_row {
  const char *method;
  const char *variant; /* tells rows of one method apart: "idle", "insert" */
  size_t items, k, batch, threads, n_runs;
  double median_ms, p95_ms, p99_ms; /* wall time */
  double cpu_ms, cpu_p95_ms;        /* CPU time of the thread; ratios are of this */
  const char *device;               /* for a search on a GPU: the GPU's name */
  double device_ms, device_p95_ms;  /* time from the first to the last operation, by the GPU's clock */
  double before_ms, after_ms;       /* of median_ms: before the backend's search, and after it */
  double target_ms;                 /* the goal */
  double of_ceiling;                /* shortest time that the GPU's measured peaks allow / device_ms */
  double ratio_to_scalar;           /* the scalar reference's median / this one */
  const char *other;                /* ratio_to_other: the time of `other` / this one; inverted in a peer's row */
  double ratio_to_other;
  double p95_to_scalar;       /* this p95 / that of the scalar row, in CPU time */
  double p95_step;            /* this p95 / that of the row before it in the report */
  enum bench_verdict verdict; /* were all timed answers the K best, checked independently? */
  double recall;              /* share of the K best that the answers contain */
  double scored;              /* items a query */
  double bytes_per_item;
  double of_memory_limit; /* shortest time to read the same bytes / median */
  double of_fma_peak;     /* shortest time for the same multiply-adds / median */
  double items_per_s;
  double ns_per_item; /* and query */
};

/* Print the title and the machine. */
void report_begin(const struct bench_options *options, const char *title);

/* Print a measured rate of the machine as "name: value unit". In JSON, every row that follows has it as the field
 * `key`. The texts must stay valid. */
void report_limit(const struct bench_options *options, const char *key, const char *name, double value,
                  const char *unit);

/* Print rows that belong together, without columns that all rows leave empty. */
void report_rows(const struct bench_options *options, const struct bench_row *rows, size_t n);

/* Print that a method was skipped, and why. */
void report_skipped(const struct bench_options *options, const char *method, const char *why);

#endif
