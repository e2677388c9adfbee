/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU of mol_bounds() (kernels/x86/simd_rough_math.h), for a test that is compiled without AVX-512. Only to be
 * called on a machine that has it. */
#ifndef TESTS_SUPPORT_ROUGH_MATH_H
#define TESTS_SUPPORT_ROUGH_MATH_H

enum { ROUGH_LANES = 16 };

/* x[i] = exp(x[i]), or SiLU(x[i]), for ROUGH_LANES numbers. */
void rough_exp(float *x);
void rough_silu(float *x);

#endif
