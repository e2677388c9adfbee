/* SPDX-License-Identifier: Apache-2.0 */
/* GELU in its exact form, x Phi(x), in double. Every variant takes exactly these steps, so all give the same bits, with
 * any C library.
 *
 * With a = |x|, GELU is max(x, 0) - a Phi(-a). Phi(-a) is exp(-a^2 / 2) times a function that falls slowly: half of
 * erfcx(a / sqrt 2). That is u (C0 + C1 u + ...) with u = 1 / (1 + a / 4). */
#ifndef KERNELS_GELU_REF_H
#define KERNELS_GELU_REF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Beyond it, a Phi(-a) is 0 in f32. */
#define GELU_MAX 15.0

/* Minimax for a up to GELU_MAX: relative error 6.3e-12. */
enum { GELU_TERMS = 14 };
static const double gelu_terms[GELU_TERMS] = { 0x1.9884d377faf8ep-4,  0x1.9875537e646b2p-4,  0x1.7fc5bd5923933p-4,
                                               0x1.45a27b0144c59p-4,  0x1.2531cc0d6b439p-4,  0x1.c3a45ed4554a6p-7,
                                               0x1.96a03e9209dd9p-4,  -0x1.0a1416ab7ce6ap-3, 0x1.4f71f7f1da890p-3,
                                               -0x1.041da9ce171e6p-3, 0x1.537db72e56dc0p-6,  0x1.f71f51f6aa929p-6,
                                               -0x1.379542d988f02p-6, 0x1.c29536407b13fp-9 };

#define GELU_LOG2_E 0x1.71547652b82fep+0
/* Adding it rounds a number to an integer, and leaves the integer in the low bits of the sum. */
#define GELU_ROUND 0x1.8p+52
/* ln 2 = HI + LO. HI has few bits, so n * HI is exact. */
#define GELU_LN2_HI 0x1.62e42fefa3800p-1
#define GELU_LN2_LO 0x1.ef35793c76730p-45

/* exp(r) by its series, |r| <= ln(2) / 2: relative error 7e-12. */
enum { GELU_EXP_TERMS = 10 };
static const double gelu_exp_terms[GELU_EXP_TERMS] = { 1.0,       1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,
                                                       1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880 };

static inline double gelu_polynomial(const double *terms, int n, double x)
{
  double sum = terms[n - 1];

  for (int i = n - 2; i >= 0; i--)
    sum = fma(sum, x, terms[i]);
  return sum;
}

/* exp(y) for y from -GELU_MAX^2 / 2 to 0. */
static inline double gelu_exp(double y)
{
  double shifted = fma(y, GELU_LOG2_E, GELU_ROUND), n = shifted - GELU_ROUND;
  double r = fma(n, -GELU_LN2_LO, fma(n, -GELU_LN2_HI, y));
  double p = gelu_polynomial(gelu_exp_terms, GELU_EXP_TERMS, r);
  uint64_t p_bits, n_bits;

  memcpy(&p_bits, &p, sizeof p_bits);
  memcpy(&n_bits, &shifted, sizeof n_bits);
  p_bits += n_bits << 52; /* p *= 2^n; the shift drops the bits of GELU_ROUND */
  memcpy(&p, &p_bits, sizeof p);
  return p;
}

/* Return GELU(x), within 0.51 ulp. NaN stays NaN. */
static inline float gelu_of(float x)
{
  double v = (double)x, a = v > -v ? v : -v;

  a = GELU_MAX < a ? GELU_MAX : a;
  double u = 1.0 / fma(a, 0.25, 1.0);
  double tail = u * gelu_polynomial(gelu_terms, GELU_TERMS, u);
  double e = gelu_exp(a * a * -0.5);
  return (float)((v > 0.0 ? v : 0.0) - a * tail * e);
}

#endif
