/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU of math_ref.h on SIMD registers. Include it after simd_avx2.h or simd_avx512.h. Private to the variant
 * files. */
#ifndef KERNELS_X86_SIMD_MATH_H
#define KERNELS_X86_SIMD_MATH_H

#include "kernels/math_ref.h"
#include "kernels/x86/simd_macros.h"

/* x[i] = math_exp(x[i]) for x[i] <= MATH_EXP_MAX. Each step is done for all n registers before the next step, which
 * hides the latency of the dependent steps. */
TILE void exp_floats(floats *x, int n)
{
  floats shifted[MATH_REGS], n_float[MATH_REGS], r[MATH_REGS], p[MATH_REGS];
  const floats round = floats_set1(MATH_ROUND), one = floats_set1(1.0f);

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = floats_max(x[i], floats_set1(MATH_EXP_MIN));
  EACH shifted[i] = floats_fma(x[i], floats_set1(MATH_LOG2_E), round);
  EACH n_float[i] = floats_sub(shifted[i], round);
  EACH r[i] = floats_fma(n_float[i], floats_set1(-MATH_LN2_HI), x[i]);
  EACH r[i] = floats_fma(n_float[i], floats_set1(-MATH_LN2_LO), r[i]);
  EACH p[i] = floats_fma(floats_set1(MATH_EXP_C6), r[i], floats_set1(MATH_EXP_C5));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(MATH_EXP_C4));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(MATH_EXP_C3));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(MATH_EXP_C2));
  EACH p[i] = floats_fma(p[i], r[i], one);
  EACH p[i] = floats_fma(p[i], r[i], one);
  EACH x[i] = floats_scale(p[i], n_float[i], shifted[i]);
#undef EACH
}

/* x[i] = math_silu(x[i]) */
TILE void silu_floats(floats *x, int n)
{
  floats e[MATH_REGS];

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = floats_max(floats_set1(-MATH_EXP_MAX), x[i]);
  EACH e[i] = floats_negate(x[i]);
  exp_floats(e, n);
  EACH e[i] = floats_add(e[i], floats_set1(1.0f));
  EACH x[i] = floats_div(x[i], e[i]);
#undef EACH
}

TILE void silu_tile(float *x, int n)
{
  floats v[MATH_REGS];

  UNROLL for (int i = 0; i < n; i++) v[i] = floats_load(x + i * FLOATS_N);
  silu_floats(v, n);
  UNROLL for (int i = 0; i < n; i++) floats_store(x + i * FLOATS_N, v[i]);
}

SHARED void VARIANT(silu)(float *x, size_t n)
{
  size_t i = 0;

  for (; i + MATH_REGS * FLOATS_N <= n; i += MATH_REGS * FLOATS_N)
    silu_tile(x + i, MATH_REGS);
  for (; i + FLOATS_N <= n; i += FLOATS_N)
    silu_tile(x + i, 1);
  if (i < n) {
    floats last = floats_load_first(x + i, n - i);
    silu_floats(&last, 1);
    floats_store_first(x + i, n - i, last);
  }
}

#endif
