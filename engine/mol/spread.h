/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation of 0..n-1 in which every prefix is spread evenly over the whole range. It takes steps of about the
 * golden section of n, modulo n. Thread: any. */
#ifndef ENGINE_MOL_SPREAD_H
#define ENGINE_MOL_SPREAD_H

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

static inline size_t spread_next(struct spread *s)
{
  size_t now = s->at;

  s->at = (s->at + s->step) % s->n;
  return now;
}

#endif
