/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU of mol_bounds(): faster and less exact than mol_score()'s. They are apart because a test calls them
 * alone. Include it after simd_avx512.h. Private to the variant files. */
#ifndef KERNELS_X86_SIMD_ROUGH_MATH_H
#define KERNELS_X86_SIMD_ROUGH_MATH_H

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_math.h"

/* exp(r), minimax on |r| <= ln(2) / 2: relative error 2.7e-6. */
#define ROUGH_EXP_C0 0x1.ffffe8p-1f
#define ROUGH_EXP_C1 0x1.fffb32p-1f
#define ROUGH_EXP_C2 0x1.0005bap-1f
#define ROUGH_EXP_C3 0x1.57e162p-3f
#define ROUGH_EXP_C4 0x1.53a08ep-5f
#define ROUGH_LN2    0x1.62e43p-1f

/* out[i] = exp(sign x[i]) for a sign of 1 or -1 and |x[i]| < 2^21. The relative error is at most ROUGH_EXP_ERROR where
 * the result is a normal number. Between -2^50 and -2^21, sign x[i] gives 0. */
TILE void exp_roughly(const floats *x, float sign, floats *out, int n)
{
  floats shifted[MATH_REGS], n_float[MATH_REGS], r[MATH_REGS], p[MATH_REGS];
  const floats round = floats_set1(MATH_ROUND);

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH shifted[i] = floats_fma(x[i], floats_set1(sign * MATH_LOG2_E), round);
  EACH n_float[i] = floats_sub(shifted[i], round);
  EACH r[i] = floats_fma(n_float[i], floats_set1(sign * -ROUGH_LN2), x[i]); /* sign r */
  EACH p[i] = floats_fma(floats_set1(ROUGH_EXP_C4), r[i], floats_set1(sign * ROUGH_EXP_C3));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(ROUGH_EXP_C2));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(sign * ROUGH_EXP_C1));
  EACH p[i] = floats_fma(p[i], r[i], floats_set1(ROUGH_EXP_C0));
  EACH out[i] = floats_scale(p[i], n_float[i], shifted[i]);
#undef EACH
}

/* x[i] = SiLU(x[i]) with a relative error of at most ROUGH_SILU_ERROR. */
TILE void silu_roughly(floats *x, int n)
{
  floats e[MATH_REGS];

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = floats_max(floats_set1(-MATH_EXP_MAX), x[i]);
  exp_roughly(x, -1, e, n);
  EACH e[i] = _mm512_rcp14_ps(floats_add(e[i], floats_set1(1.0f)));
  EACH x[i] = floats_mul(x[i], e[i]);
#undef EACH
}

#endif
