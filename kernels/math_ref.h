/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU in f32. Every variant takes exactly these steps, so all give the same bits. */
#ifndef KERNELS_MATH_REF_H
#define KERNELS_MATH_REF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Also compiled for GPUs: their fused multiply-adds and divisions round like the processor's. */
#ifdef __CUDACC__
#define MATH_FUNCTION static inline __host__ __device__
#else
#define MATH_FUNCTION static inline
#endif

/* exp clamps its argument to this range. There its result is a normal number, 1.6e-38 to 1.7e38. */
#define MATH_EXP_MIN (-87.0f)
#define MATH_EXP_MAX 88.0f

#define MATH_LOG2_E 0x1.715476p+0f
/* Adding it rounds a number to an integer, and leaves the integer in the low bits of the sum. */
#define MATH_ROUND 0x1.8p+23f
/* ln 2 = HI + LO. HI has few bits, so n * HI is exact. */
#define MATH_LN2_HI 0x1.62e4p-1f
#define MATH_LN2_LO 0x1.7f7d1cp-20f

/* exp(r) = 1 + r + r^2 (C2 + C3 r + ...), minimax on |r| <= ln(2) / 2: relative error 3.1e-9. */
#define MATH_EXP_C2 0x1.fffffcp-2f
#define MATH_EXP_C3 0x1.555492p-3f
#define MATH_EXP_C4 0x1.5558f2p-5f
#define MATH_EXP_C5 0x1.1239e2p-7f
#define MATH_EXP_C6 0x1.6a2434p-10f

/* Return exp(x), within 1 ulp. x is clamped to MATH_EXP_MIN and MATH_EXP_MAX. */
MATH_FUNCTION float math_exp(float x)
{
  x = x > MATH_EXP_MIN ? x : MATH_EXP_MIN;
  x = x < MATH_EXP_MAX ? x : MATH_EXP_MAX;

  float shifted = fmaf(x, MATH_LOG2_E, MATH_ROUND);
  float n = shifted - MATH_ROUND;
  float r = fmaf(n, -MATH_LN2_HI, x);
  r = fmaf(n, -MATH_LN2_LO, r);

  float p = MATH_EXP_C6;
  p = fmaf(p, r, MATH_EXP_C5);
  p = fmaf(p, r, MATH_EXP_C4);
  p = fmaf(p, r, MATH_EXP_C3);
  p = fmaf(p, r, MATH_EXP_C2);
  p = fmaf(p, r, 1.0f);
  p = fmaf(p, r, 1.0f);

  uint32_t p_bits, n_bits;
  memcpy(&p_bits, &p, sizeof p_bits);
  memcpy(&n_bits, &shifted, sizeof n_bits);
  p_bits += n_bits << 23; /* p *= 2^n; the shift drops the bits of MATH_ROUND */
  memcpy(&p, &p_bits, sizeof p);
  return p;
}

/* SiLU(x) = x / (1 + exp(-x)) is the quotient of the next two, the second for what the first returns. An x below
 * -MATH_EXP_MAX counts as -MATH_EXP_MAX: there SiLU is 0 to within 1e-36, and the numerator cannot grow while exp is
 * clamped. NaN stays NaN. */
MATH_FUNCTION float math_silu_dividend(float x)
{
  return -MATH_EXP_MAX > x ? -MATH_EXP_MAX : x;
}

MATH_FUNCTION float math_silu_divisor(float x)
{
  return 1.0f + math_exp(-x);
}

/* Return SiLU(x). */
MATH_FUNCTION float math_silu(float x)
{
  x = math_silu_dividend(x);
  return x / math_silu_divisor(x);
}

#endif
