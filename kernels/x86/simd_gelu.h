/* SPDX-License-Identifier: Apache-2.0 */
/* GELU of gelu_ref.h on SIMD registers. Include it after a simd_numbers_*.h. Private to the variant files. */
#ifndef KERNELS_X86_SIMD_GELU_H
#define KERNELS_X86_SIMD_GELU_H

#include <string.h>

#include "kernels/gelu_ref.h"
#include "kernels/x86/simd_macros.h"

enum { GELU_REGS = 2, GELU_STEP = GELU_REGS * DOUBLES_N }; /* two chains of dependent steps hide each other's latency */

#define EACH UNROLL for (int i = 0; i < GELU_REGS; i++)

TILE void gelu_polynomials(const double *terms, int n, const doubles x[GELU_REGS], doubles sums[GELU_REGS])
{
  EACH sums[i] = doubles_set1(terms[n - 1]);
  UNROLL for (int k = n - 2; k >= 0; k--)
  {
    EACH sums[i] = doubles_fma(sums[i], x[i], doubles_set1(terms[k]));
  }
}

TILE void gelu_exps(doubles y[GELU_REGS])
{
  const doubles round = doubles_set1(GELU_ROUND);
  doubles shifted[GELU_REGS], n[GELU_REGS], r[GELU_REGS], p[GELU_REGS];

  EACH shifted[i] = doubles_fma(y[i], doubles_set1(GELU_LOG2_E), round);
  EACH n[i] = doubles_sub(shifted[i], round);
  EACH r[i] = doubles_fma(n[i], doubles_set1(-GELU_LN2_HI), y[i]);
  EACH r[i] = doubles_fma(n[i], doubles_set1(-GELU_LN2_LO), r[i]);
  gelu_polynomials(gelu_exp_terms, GELU_EXP_TERMS, r, p);
  EACH y[i] = doubles_scale(p[i], shifted[i]);
}

/* x[i] = gelu_of(x[i]) for GELU_STEP numbers. */
TILE void gelu_tile(float *x)
{
  const doubles one = doubles_set1(1.0), zero = doubles_zero();
  doubles v[GELU_REGS], a[GELU_REGS], u[GELU_REGS], tail[GELU_REGS], e[GELU_REGS];

  EACH v[i] = doubles_from_floats(x + i * DOUBLES_N);
  EACH a[i] = doubles_max(v[i], doubles_sub(doubles_set1(-0.0), v[i]));
  EACH a[i] = doubles_min(doubles_set1(GELU_MAX), a[i]);
  EACH u[i] = doubles_div(one, doubles_fma(a[i], doubles_set1(0.25), one));
  gelu_polynomials(gelu_terms, GELU_TERMS, u, tail);
  EACH tail[i] = doubles_mul(u[i], tail[i]);
  EACH e[i] = doubles_mul(doubles_mul(a[i], a[i]), doubles_set1(-0.5));
  gelu_exps(e);
  EACH e[i] = doubles_mul(doubles_mul(a[i], tail[i]), e[i]);
  EACH doubles_store_floats(x + i * DOUBLES_N, doubles_sub(doubles_max(v[i], zero), e[i]));
}

#undef EACH

static void VARIANT(gelu)(float *x, size_t n)
{
  float last[GELU_STEP] = { 0 };
  size_t i = 0;

  for (; i + GELU_STEP <= n; i += GELU_STEP)
    gelu_tile(x + i);
  if (i < n) {
    memcpy(last, x + i, (n - i) * sizeof *x);
    gelu_tile(last);
    memcpy(x + i, last, (n - i) * sizeof *x);
  }
}

static void fill_gelu(struct kernels *table)
{
  table->gelu = VARIANT(gelu);
}

#endif
