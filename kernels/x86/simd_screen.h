/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of mol_screen() with AVX-512, whichever way gates were computed. Lanes are items. "Step" means a step of the
 * proof in mol_screen.h. Private to the variant files. */
#ifndef KERNELS_X86_SIMD_SCREEN_H
#define KERNELS_X86_SIMD_SCREEN_H

#include "kernels/mol_screen.h"
#include "kernels/x86/simd_avx512.h"
#include "kernels/x86/simd_math.h"

enum { REGS = MOL_LANES / FLOATS_N }; /* registers that hold one number of all items */

/* An item passes if its delta is larger, or if an exponent of its weights is. */
#define DELTA_MAX    40.0f
#define EXPONENT_MAX 60.0f

/* 2^r on [0, 1), minimax: relative error 1.72e-03. */
#define EXP2_C0 0x1.007108p+0f
#define EXP2_C1 0x1.50b5b4p-1f
#define EXP2_C2 0x1.594830p-2f

struct screen_sums {
  floats sum[REGS], squares[REGS], positive[REGS]; /* N, Q+ + Q-, Q+ */
  floats exponent[REGS];                           /* the largest */
};

TILE void screen_sums_begin(struct screen_sums *sums)
{
  UNROLL for (int v = 0; v < REGS; v++)
  {
    sums->sum[v] = sums->squares[v] = sums->positive[v] = floats_zero();
    sums->exponent[v] = floats_set1(-SCREEN_SHIFT);
  }
}

/* 2^x for finite x. */
TILE floats exp2_of(floats x)
{
  floats r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC), p;

  p = floats_fma(floats_set1(EXP2_C2), r, floats_set1(EXP2_C1));
  p = floats_fma(p, r, floats_set1(EXP2_C0));
  return _mm512_scalef_ps(p, x);
}

/* Add the term of one logit: x are its weights' exponents, with base 2 and minus SCREEN_SHIFT, and l is l~ - T. */
TILE void screen_sums_add(struct screen_sums *sums, const floats x[REGS], const floats l[REGS])
{
  floats e[REGS], t[REGS];

#define EACH UNROLL for (int v = 0; v < REGS; v++)
  EACH sums->exponent[v] = floats_max(x[v], sums->exponent[v]);
  EACH e[v] = exp2_of(x[v]);
  EACH t[v] = floats_mul(e[v], l[v]);
  EACH sums->sum[v] = floats_add(sums->sum[v], t[v]);
  EACH sums->squares[v] = floats_fma(t[v], t[v], sums->squares[v]);
  EACH t[v] = floats_max(t[v], floats_zero());
  EACH sums->positive[v] = floats_fma(t[v], t[v], sums->positive[v]);
#undef EACH
}

/* The largest SiLU(z), at least 1/2. */
TILE floats screen_sums_largest(const struct screen_sums *sums, int v)
{
  const float ln_2 = 0x1.63p-1f;
  floats largest = floats_mul(floats_add(sums->exponent[v], floats_set1(SCREEN_SHIFT)), floats_set1(ln_2));

  return floats_max(largest, floats_set1(0.5f));
}

/* Steps 6 and 7: which of FLOATS_N items may reach the threshold? Comparisons with NaN are false: such items pass. */
static inline __mmask16 screen_sums_pass(const struct screen_sums *sums, int v, floats delta, size_t n_logits)
{
  floats kappa = floats_min(delta, floats_set1(DELTA_MAX)), squares, positive;

  exp_floats(&kappa, 1);
  kappa = floats_add(kappa, floats_set1(0x1p-20f - 1)); /* plus the rounding of the subtraction */
  positive = floats_mul(floats_mul(kappa, kappa), sums->positive[v]);
  squares = floats_max(floats_sub(sums->squares[v], sums->positive[v]), floats_zero());
  /* plus the rounding of both */
  squares = floats_fma(floats_set1((float)(n_logits + 8) * 0x1p-22f), sums->squares[v], squares);
  squares = floats_fma(floats_mul(delta, delta), squares, positive);
  floats most = floats_fma(_mm512_sqrt_ps(squares), floats_set1(1 + 0x1p-10f), sums->sum[v]);
  __mmask16 fails = _mm512_cmp_ps_mask(most, floats_zero(), _CMP_LT_OQ) &
                    _mm512_cmp_ps_mask(delta, floats_set1(DELTA_MAX), _CMP_LT_OQ) &
                    _mm512_cmp_ps_mask(sums->exponent[v], floats_set1(EXPONENT_MAX), _CMP_LT_OQ);
  return (__mmask16)~fails;
}

#endif
