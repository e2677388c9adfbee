/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are not uniform. */
#ifndef TESTS_BENCH_BENCH_DRAW_H
#define TESTS_BENCH_BENCH_DRAW_H

#include <math.h>

#include "tests/support/dice.h"

/* Uniform in (0, 1). */
static inline double draw_unit(struct dice *d)
{
  return ((double)(dice_u64(d) >> 11) + 0.5) * 0x1p-53;
}

/* Standard normal (Box and Muller). */
static inline double draw_normal(struct dice *d)
{
  return sqrt(-2 * log(draw_unit(d))) * cos(2 * 3.14159265358979323846 * draw_unit(d));
}

/* Close to standard normal and cheap: the sum of four uniform numbers. */
static inline float draw_rough_normal(struct dice *d)
{
  uint64_t bits = dice_u64(d);
  int sum = (int)(bits & 0xffff) + (int)(bits >> 16 & 0xffff) + (int)(bits >> 32 & 0xffff) + (int)(bits >> 48);

  return ((float)sum - 131070.0f) * (1.0f / 37837.0f);
}

static inline void draw_normals(struct dice *d, float *out, size_t n, double scale)
{
  for (size_t i = 0; i < n; i++)
    out[i] = (float)(scale * draw_normal(d));
}

/* Student's t with five degrees of freedom. */
static inline double draw_student5(struct dice *d)
{
  double square = 0;

  for (int i = 0; i < 5; i++) {
    double x = draw_normal(d);
    square += x * x;
  }
  return draw_normal(d) / sqrt(square / 5);
}

#endif
