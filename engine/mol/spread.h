/* SPDX-License-Identifier: Apache-2.0 */
/* An order of n things whose every beginning is spread evenly over all: steps of the golden section, around and around.
 * Thread: any. */
#ifndef ENGINE_MOL_SPREAD_H
#define ENGINE_MOL_SPREAD_H

#include <stddef.h>

struct spread {
  size_t n, step, at;
};

/* The first is 0. */
static inline struct spread spread_over(size_t n)
{
  size_t step = n * 89 / 144 + 1;

  for (;; step++) { /* coprime to n, so that each is met once: the next prime number is */
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
