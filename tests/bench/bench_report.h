/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a benchmark: a table for people, JSON lines for programs, or Markdown for docs/benchmarks. */
#ifndef TESTS_BENCH_BENCH_REPORT_H
#define TESTS_BENCH_BENCH_REPORT_H

#include "tests/bench/bench_options.h"

enum bench_verdict { VERDICT_UNCHECKED, VERDICT_NOT_EXACT, VERDICT_EXACT };

/* Numbers that do not apply are 0, texts NULL. */
struct bench_row {
  const char *method;
  const char *variant; /* what distinguishes rows of one method: "idle", "insert" */
  size_t items, k, batch, threads, n_runs;
  double median_ms, p95_ms, p99_ms; /* of the wall clock */
  double cpu_ms, cpu_p95_ms;        /* of the thread's processor time; the ratios are of this */
  const char *device;               /* of a search on a GPU: its name, */
  double device_ms, device_p95_ms;  /* the time between the first and the last that it was asked for, by its clock, */
  double target_ms;                 /* what was aimed at, */
  double of_ceiling;                /* and the least time by the device's measured limits / device_ms */
  double ratio_to_scalar;           /* how often it fits into the scalar reference's median */
  const char *other; /* ratio_to_other: how often `other` takes as long as this row; of a peer's row inverted */
  double ratio_to_other;
  enum bench_verdict verdict; /* whether all timed answers were the K best, checked independently */
  double recall;              /* share of the K best in the answers */
  double scored;              /* items a query */
  double bytes_per_item;
  double of_memory_limit; /* least time that reading the same bytes takes / median */
  double of_fma_peak;     /* least time of the same multiply-adds / median */
  double items_per_s;
  double ns_per_item; /* and query */
};

/* Print the title and the machine. */
void report_begin(const struct bench_options *options, const char *title);

/* Print what was measured of the machine, "name: value unit"; in JSON it is the field `key` of every row that follows.
 * The texts are kept. */
void report_limit(const struct bench_options *options, const char *key, const char *name, double value,
                  const char *unit);

/* Print rows that belong together; columns that no row uses are left out. */
void report_rows(const struct bench_options *options, const struct bench_row *rows, size_t n);

/* A line that a method was left out. */
void report_skipped(const struct bench_options *options, const char *method, const char *why);

#endif
