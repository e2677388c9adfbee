/* SPDX-License-Identifier: Apache-2.0 */
/* 2^-x in double, by additions and multiplications alone: the same bits on every machine, as scores need. The library's
 * exp2() may use fused multiply-adds where there are some. */
#ifndef ENGINE_BOOSTS_DECAY_H
#define ENGINE_BOOSTS_DECAY_H

#include <math.h>

/* From here on 2^-x is 0. */
#define DECAY_MAX 1074.0
/* Adding it rounds a number to an integer. */
#define DECAY_ROUND 0x1.8p52
#define DECAY_LN2   0x1.62e42fefa39efp-1

/* Return 2^-x, within 2 ulp; x is not negative. */
static inline double decay(double x)
{
  /* 1 / i!, from i = 13 down to 2: the series of e^y. For |y| <= ln(2) / 2 the rest is below 1e-17. */
  static const double terms[] = { 0x1.6124613a86d09p-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26,
                                  0x1.27e4fb7789f5cp-22, 0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16,
                                  0x1.a01a01a01a01ap-13, 0x1.6c16c16c16c17p-10, 0x1.1111111111111p-7,
                                  0x1.5555555555555p-5,  0x1.5555555555555p-3,  0x1p-1 };

  if (x >= DECAY_MAX)
    return 0.0;
  double n = (x + DECAY_ROUND) - DECAY_ROUND;
  double y = (n - x) * DECAY_LN2;
  double sum = terms[0];
  for (size_t i = 1; i < sizeof terms / sizeof *terms; i++)
    sum = sum * y + terms[i];
  sum = (sum * y + 1.0) * y + 1.0;
  return ldexp(sum, -(int)n);
}

#endif
