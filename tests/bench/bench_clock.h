/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks of a benchmark, wall and CPU time, and quantiles of their readings. */
#ifndef TESTS_BENCH_BENCH_CLOCK_H
#define TESTS_BENCH_BENCH_CLOCK_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double bench_clock_ms(clockid_t clock)
{
  struct timespec now;

  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Wall time: what a user waits for. */
static inline double bench_wall_ms(void)
{
  return bench_clock_ms(CLOCK_MONOTONIC);
}

/* CPU time of this thread: without other threads on the same core. */
static inline double bench_cpu_ms(void)
{
  return bench_clock_ms(CLOCK_THREAD_CPUTIME_ID);
}

static inline int bench_compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Return the q-quantile of n >= 1 values. */
static inline double bench_quantile(const double *values, size_t n, double q)
{
  double *sorted = malloc(n * sizeof *sorted);
  size_t index = (size_t)(q * (double)n);

  memcpy(sorted, values, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, bench_compare_doubles);
  double value = sorted[index < n ? index : n - 1];
  free(sorted);
  return value;
}

#endif
