/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options of a benchmark program, and how it reports failures. Thread: main. */
#ifndef TESTS_BENCH_BENCH_OPTIONS_H
#define TESTS_BENCH_BENCH_OPTIONS_H

#include "base/err.h"
#include "tests/support/dice.h"

enum { BENCH_METHODS_MAX = 16, BENCH_K_MAX = 2048 };

enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_MARKDOWN };

struct bench_options {
  const char *workload;
  size_t items;
  size_t threads; /* that share a search, or the networks of items: for the workloads "threads" and "apply" */
  uint32_t k;     /* hits of a search: for the workload "mol"; 0: each race of the workload has its own */
  double seconds; /* time limit of each method in each race */
  enum bench_format format;
  const char *methods[BENCH_METHODS_MAX];
  size_t n_methods;
  const char *peers; /* folder of the peers' programs; NULL: run none */
  uint64_t seed;
  struct dice dice;
  char dir[256]; /* temporary folder in TMPDIR or /tmp, for the model and the peers' inputs */
};

/* Parse --items N, --threads N, --k N, --seconds S, --methods M..., --json, --markdown and --peers FOLDER. `defaults`
 * gives the workload, and the items, k, seconds and methods that the command line omits. Prints the seed to stderr, makes the
 * temporary folder, and exits with status 2 on a bad command line. */
void bench_begin(int argc, char **argv, const struct bench_options *defaults, struct bench_options *out);

/* Remove the temporary folder. Return the exit status: 1 if bench_fail() was called. */
int bench_end(struct bench_options *options);

/* Exit if a call that must succeed has failed. */
void bench_check(err_code_t code);

/* Report a wrong result, and remember it for the exit status. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print a progress line to stderr. On a terminal it replaces the last one. */
void bench_progress(const char *what, size_t done, size_t total);

/* Return "DIR/name". The text is static and valid until the next call. */
const char *bench_path(const struct bench_options *options, const char *name);

#endif
