/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD registers of floats with AVX2 and FMA: 8 floats, 16 registers. simd_avx512.h has the contracts. */
#ifndef KERNELS_X86_SIMD_AVX2_H
#define KERNELS_X86_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/variants.h"

#define SIMD_SUFFIX avx2

typedef __m256 floats;

enum {
  FLOATS_N = 8,
  LAYER_OUTPUTS = 4,
  LAYER_REGS = 2,
  MATH_REGS = 4,
  LINEAR_ROWS = 4,
  LINEAR_REGS = 3,
  DOTS_ROWS = 4,
  DOTS_VECTORS = 3,
  LISTS_ROWS = 4,
  LISTS_REGS = 2,
};

static inline __m256i first_lanes(size_t n)
{
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

static inline floats floats_load(const float *p)
{
  return _mm256_loadu_ps(p);
}

static inline void floats_store(float *p, floats v)
{
  _mm256_storeu_ps(p, v);
}

static inline floats floats_load_first(const float *p, size_t n)
{
  return _mm256_maskload_ps(p, first_lanes(n));
}

static inline void floats_store_first(float *p, size_t n, floats v)
{
  _mm256_maskstore_ps(p, first_lanes(n), v);
}

static inline floats floats_keep_first(floats v, size_t n)
{
  return _mm256_and_ps(v, _mm256_castsi256_ps(first_lanes(n)));
}

static inline floats floats_set1(float x)
{
  return _mm256_set1_ps(x);
}

static inline floats floats_zero(void)
{
  return _mm256_setzero_ps();
}

static inline floats floats_fma(floats a, floats b, floats c)
{
  return _mm256_fmadd_ps(a, b, c);
}

static inline floats floats_add(floats a, floats b)
{
  return _mm256_add_ps(a, b);
}

static inline floats floats_sub(floats a, floats b)
{
  return _mm256_sub_ps(a, b);
}

static inline floats floats_mul(floats a, floats b)
{
  return _mm256_mul_ps(a, b);
}

static inline floats floats_div(floats a, floats b)
{
  return _mm256_div_ps(a, b);
}

static inline floats floats_max(floats a, floats b)
{
  return _mm256_max_ps(a, b);
}

static inline floats floats_min(floats a, floats b)
{
  return _mm256_min_ps(a, b);
}

static inline floats floats_negate(floats v)
{
  return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
}

static inline floats floats_scale(floats p, floats n, floats shifted)
{
  __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);

  (void)n;
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

/* Load four floats of rows[0] into the lower half, of rows[4] into the upper half. */
static inline floats load_quads(const float *const *rows, size_t column)
{
  floats v = _mm256_castps128_ps256(_mm_loadu_ps(rows[0] + column));

  return _mm256_insertf128_ps(v, _mm_loadu_ps(rows[4] + column), 1);
}

static inline void floats_transpose4(const float *const *rows, size_t column, floats out[4])
{
  floats a = load_quads(rows, column), b = load_quads(rows + 1, column);
  floats c = load_quads(rows + 2, column), d = load_quads(rows + 3, column);
  floats ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
  floats cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);

  out[0] = _mm256_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(1, 0, 1, 0));
  out[1] = _mm256_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(3, 2, 3, 2));
  out[2] = _mm256_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(1, 0, 1, 0));
  out[3] = _mm256_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(3, 2, 3, 2));
}

/* out[c][i] = rows[i][column + c] for FLOATS_N columns c and rows i. */
static inline void floats_transpose_square(const float *const *rows, size_t column, floats out[FLOATS_N])
{
  floats_transpose4(rows, column, out);
  floats_transpose4(rows, column + 4, out + 4);
}

static inline size_t floats_append_ge(const float *scores, floats threshold, uint32_t base, uint32_t *out)
{
  unsigned hits = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(scores), threshold, _CMP_GE_OQ));
  size_t found = 0;

  for (; hits; hits &= hits - 1)
    out[found++] = base + (uint32_t)__builtin_ctz(hits);
  return found;
}

#endif
