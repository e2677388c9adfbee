/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation of 0..n-1 in which every prefix is spread evenly over the whole range. It takes steps of about the
 * golden section of n, modulo n. Thread: any. */
#ifndef ENGINE_SPREAD_H
#define ENGINE_SPREAD_H

#include <stddef.h>

struct spread {
  size_t n, step, at;
};

/* Start a permutation of n indices. The first index is 0. */
static inline struct spread spread_over(size_t n)
{
  size_t step = n * 89 / 144 + 1;

  for (;; step++) { /* a step coprime to n visits every index once; the next prime is always coprime */
    size_t a = n, b = step;
    while (b > 0) {
      size_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a <= 1)
      return (struct spread){ n, step, 0 };
  }
}

/* The i-th index, i < n. */
static inline size_t spread_at(const struct spread *s, size_t i)
{
  return i * s->step % s->n;
}

static inline size_t spread_next(struct spread *s)
{
  size_t now = s->at;

  s->at = (s->at + s->step) % s->n;
  return now;
}

/* An order of 0..n-1 for scans: an even sample comes first, then the rest in runs of consecutive indices. Memory is
 * read faster in runs. The runs are spread over the whole range too, but more coarsely than the sample. */
struct spread_runs {
  size_t n;
  struct spread runs; /* the sample has runs.n indices */
  size_t n_sample;    /* how many of them are left */
  size_t first, at;   /* the current run, and the place in it */
};

enum { SPREAD_RUN = 8 }; /* the first index of a run belongs to the sample */

static inline struct spread_runs spread_runs_over(size_t n)
{
  struct spread runs = spread_over((n + SPREAD_RUN - 1) / SPREAD_RUN);

  return (struct spread_runs){ .n = n, .runs = runs, .n_sample = runs.n, .at = SPREAD_RUN };
}

/* Call it n times at most. */
static inline size_t spread_runs_next(struct spread_runs *s)
{
  if (s->n_sample > 0) {
    s->n_sample--;
    return spread_next(&s->runs) * SPREAD_RUN;
  }
  while (s->at == SPREAD_RUN || s->first + s->at >= s->n) {
    s->first = spread_next(&s->runs) * SPREAD_RUN;
    s->at = 1;
  }
  return s->first + s->at++;
}

#endif
