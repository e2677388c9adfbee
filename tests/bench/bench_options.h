/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark program is asked for, and how it ends. Thread: main. */
#ifndef TESTS_BENCH_BENCH_OPTIONS_H
#define TESTS_BENCH_BENCH_OPTIONS_H

#include "base/err.h"
#include "tests/support/dice.h"

enum { BENCH_METHODS_MAX = 16 };

enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_MARKDOWN };

struct bench_options {
  const char *workload;
  size_t items;
  double seconds; /* that each method may take in each of its races */
  enum bench_format format;
  const char *methods[BENCH_METHODS_MAX];
  size_t n_methods;
  const char *peers; /* folder of the peers' programs, NULL: none run */
  uint64_t seed;
  struct dice dice;
  char dir[256]; /* temporary folder, in TMPDIR or /tmp, for the model and what the peers read */
};

/* Read the command line: --items N, --seconds S, --methods M..., --json, --markdown, --peers FOLDER. The options given
 * in `defaults` (workload, items, seconds, methods) hold where it says nothing. Prints the seed to stderr; exits with
 * status 2 where the line cannot be used. Makes the temporary folder. */
void bench_begin(int argc, char **argv, const struct bench_options *defaults, struct bench_options *out);

/* Remove the temporary folder. Returns the exit status: 1 where bench_fail() was called. */
int bench_end(struct bench_options *options);

/* End the program where a call failed that cannot. */
void bench_check(err_code_t code);

/* Say that a result is wrong, and remember it for the exit status. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line about what goes on, to stderr: it replaces the one before it on a terminal. */
void bench_progress(const char *what, size_t done, size_t total);

/* "DIR/name"; the text is static and good until the next call. */
const char *bench_path(const struct bench_options *options, const char *name);

#endif
