/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU of mol_bounds() as functions. Compiled with AVX-512. */
#include "tests/support/rough_math.h"

#include "kernels/x86/simd_avx512.h"

#include "kernels/x86/simd_rough_math.h"

_Static_assert((int)ROUGH_LANES == (int)FLOATS_N, "one register");

void rough_exp(float *x)
{
  floats v = floats_load(x);

  exp_roughly(&v, 1, &v, 1);
  floats_store(x, v);
}

void rough_silu(float *x)
{
  floats v = floats_load(x);

  silu_roughly(&v, 1);
  floats_store(x, v);
}
