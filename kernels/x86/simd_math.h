/* SPDX-License-Identifier: Apache-2.0 */
/* exp and SiLU of math_ref.h on vectors, and the words of the vector code: to be included after a simd_*.h. Private. */
#ifndef KERNELS_X86_SIMD_MATH_H
#define KERNELS_X86_SIMD_MATH_H

#include "kernels/math_ref.h"
#include "kernels/variants.h"

/* The name of a kernel with the level as its suffix. */
#define VECTOR_JOIN_(stem, suffix) stem##_##suffix
#define VECTOR_JOIN(stem, suffix)  VECTOR_JOIN_(stem, suffix)
#define VARIANT(stem)              VECTOR_JOIN(stem, SIMD_SUFFIX)

/* Tiles are functions of constant sizes: inlined and unrolled (UNROLL), their arrays of vectors become registers. */
#define TILE static inline __attribute__((always_inline))
/* Functions of their own: there the compiler keeps the pointers of the inner loop in registers. */
#define OWN static __attribute__((noinline))
/* Functions that not every file which includes them calls. */
#define SHARED static __attribute__((unused))

/* x[i] = math_exp(x[i]) for x[i] <= MATH_EXP_MAX. One vector's steps wait for each other, those of n vectors do not: so
 * each step is written for all of them before the next. */
TILE void exp_vecs(vec *x, int n)
{
  vec shifted[MATH_VECS], n_float[MATH_VECS], r[MATH_VECS], p[MATH_VECS];
  const vec round = vec_set1(MATH_ROUND), one = vec_set1(1.0f);

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = vec_max(x[i], vec_set1(MATH_EXP_MIN));
  EACH shifted[i] = vec_fma(x[i], vec_set1(MATH_LOG2_E), round);
  EACH n_float[i] = vec_sub(shifted[i], round);
  EACH r[i] = vec_fma(n_float[i], vec_set1(-MATH_LN2_HI), x[i]);
  EACH r[i] = vec_fma(n_float[i], vec_set1(-MATH_LN2_LO), r[i]);
  EACH p[i] = vec_fma(vec_set1(MATH_EXP_C6), r[i], vec_set1(MATH_EXP_C5));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C4));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C3));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C2));
  EACH p[i] = vec_fma(p[i], r[i], one);
  EACH p[i] = vec_fma(p[i], r[i], one);
  EACH x[i] = vec_scale(p[i], n_float[i], shifted[i]);
#undef EACH
}

/* x[i] = math_silu(x[i]) */
TILE void silu_vecs(vec *x, int n)
{
  vec e[MATH_VECS];

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = vec_max(vec_set1(-MATH_EXP_MAX), x[i]);
  EACH e[i] = vec_negate(x[i]);
  exp_vecs(e, n);
  EACH e[i] = vec_add(e[i], vec_set1(1.0f));
  EACH x[i] = vec_div(x[i], e[i]);
#undef EACH
}

TILE void silu_tile(float *x, int n)
{
  vec v[MATH_VECS];

  UNROLL for (int i = 0; i < n; i++) v[i] = vec_load(x + i * VEC_FLOATS);
  silu_vecs(v, n);
  UNROLL for (int i = 0; i < n; i++) vec_store(x + i * VEC_FLOATS, v[i]);
}

SHARED void VARIANT(silu)(float *x, size_t n)
{
  size_t i = 0;

  for (; i + MATH_VECS * VEC_FLOATS <= n; i += MATH_VECS * VEC_FLOATS)
    silu_tile(x + i, MATH_VECS);
  for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
    silu_tile(x + i, 1);
  if (i < n) {
    vec last = vec_load_first(x + i, n - i);
    silu_vecs(&last, 1);
    vec_store_first(x + i, n - i, last);
  }
}

#endif
