/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD registers of floats with AVX-512: 16 floats, 32 registers. */
#ifndef KERNELS_X86_SIMD_AVX512_H
#define KERNELS_X86_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/variants.h"

#define SIMD_SUFFIX avx512

typedef __m512 floats;

enum {
  FLOATS_N = 16,
  LAYER_OUTPUTS = 8, /* a tile of mol_score()'s layers: outputs x registers of lanes */
  LAYER_REGS = 2,
  MATH_REGS = 4,   /* registers that exp and SiLU process together */
  LINEAR_ROWS = 6, /* a tile of linear(): rows x registers of outputs */
  LINEAR_REGS = 4,
  DOTS_ROWS = 4, /* a tile of dots_f64(): rows x vectors */
  DOTS_VECTORS = 4,
  LISTS_ROWS = 8, /* a tile of mol_lists(): rows of queries x registers of items */
  LISTS_REGS = 2,
};

static inline __mmask16 first_lanes(size_t n)
{
  return (__mmask16)((1u << n) - 1);
}

static inline floats floats_load(const float *p)
{
  return _mm512_loadu_ps(p);
}

static inline void floats_store(float *p, floats v)
{
  _mm512_storeu_ps(p, v);
}

/* Load the first n < FLOATS_N floats, zeros in the other lanes. Memory after them is not read. */
static inline floats floats_load_first(const float *p, size_t n)
{
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}

static inline void floats_store_first(float *p, size_t n, floats v)
{
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

/* Keep the first n <= FLOATS_N lanes, zero the others. */
static inline floats floats_keep_first(floats v, size_t n)
{
  return _mm512_maskz_mov_ps(first_lanes(n), v);
}

static inline floats floats_set1(float x)
{
  return _mm512_set1_ps(x);
}

static inline floats floats_zero(void)
{
  return _mm512_setzero_ps();
}

/* a * b + c, fused */
static inline floats floats_fma(floats a, floats b, floats c)
{
  return _mm512_fmadd_ps(a, b, c);
}

static inline floats floats_add(floats a, floats b)
{
  return _mm512_add_ps(a, b);
}

static inline floats floats_sub(floats a, floats b)
{
  return _mm512_sub_ps(a, b);
}

static inline floats floats_mul(floats a, floats b)
{
  return _mm512_mul_ps(a, b);
}

static inline floats floats_div(floats a, floats b)
{
  return _mm512_div_ps(a, b);
}

/* a > b ? a : b */
static inline floats floats_max(floats a, floats b)
{
  return _mm512_max_ps(a, b);
}

/* a < b ? a : b */
static inline floats floats_min(floats a, floats b)
{
  return _mm512_min_ps(a, b);
}

static inline floats floats_negate(floats v)
{
  return _mm512_xor_ps(v, _mm512_set1_ps(-0.0f));
}

/* p * 2^n, exactly; the result must be a normal number. shifted = n + MATH_ROUND, which has n in its low bits. */
static inline floats floats_scale(floats p, floats n, floats shifted)
{
  (void)shifted;
  return _mm512_scalef_ps(p, n);
}

/* Load four floats of rows[0], rows[4], rows[8] and rows[12], one row to each quarter of the register. */
static inline floats load_quads(const float *const *rows, size_t column)
{
  floats v = _mm512_castps128_ps512(_mm_loadu_ps(rows[0] + column));

  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[4] + column), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[8] + column), 2);
  return _mm512_insertf32x4(v, _mm_loadu_ps(rows[12] + column), 3);
}

/* out[c][i] = rows[i][column + c] for 4 columns c and FLOATS_N rows i. */
static inline void floats_transpose4(const float *const *rows, size_t column, floats out[4])
{
  floats a = load_quads(rows, column), b = load_quads(rows + 1, column);
  floats c = load_quads(rows + 2, column), d = load_quads(rows + 3, column);
  floats ab_low = _mm512_unpacklo_ps(a, b), ab_high = _mm512_unpackhi_ps(a, b);
  floats cd_low = _mm512_unpacklo_ps(c, d), cd_high = _mm512_unpackhi_ps(c, d);

  out[0] = _mm512_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(1, 0, 1, 0));
  out[1] = _mm512_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(3, 2, 3, 2));
  out[2] = _mm512_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(1, 0, 1, 0));
  out[3] = _mm512_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(3, 2, 3, 2));
}

/* out[i * step] has quarter i of a, b, c and d. */
static inline void transpose_quarters(floats a, floats b, floats c, floats d, floats *out, int step)
{
  floats ab_even = _mm512_shuffle_f32x4(a, b, 0x88), ab_odd = _mm512_shuffle_f32x4(a, b, 0xdd);
  floats cd_even = _mm512_shuffle_f32x4(c, d, 0x88), cd_odd = _mm512_shuffle_f32x4(c, d, 0xdd);

  out[0] = _mm512_shuffle_f32x4(ab_even, cd_even, 0x88);
  out[step] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0x88);
  out[2 * step] = _mm512_shuffle_f32x4(ab_even, cd_even, 0xdd);
  out[3 * step] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0xdd);
}

/* out[c][i] = rows[i][column + c] for FLOATS_N columns c and rows i. A cache line is read in one piece. */
static inline void floats_transpose_square(const float *const *rows, size_t column, floats out[FLOATS_N])
{
  floats x[4][4]; /* [c][g]: of four rows 4 g.., numbers c, c + 4, c + 8, c + 12 */

  UNROLL for (int g = 0; g < 4; g++)
  {
    __m512d ab_low, ab_high, cd_low, cd_high;
    floats a = _mm512_loadu_ps(rows[4 * g] + column), b = _mm512_loadu_ps(rows[4 * g + 1] + column);
    floats c = _mm512_loadu_ps(rows[4 * g + 2] + column), d = _mm512_loadu_ps(rows[4 * g + 3] + column);
    ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    x[0][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low));
    x[1][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low));
    x[2][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
    x[3][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
  }
  UNROLL for (int c = 0; c < 4; c++) transpose_quarters(x[c][0], x[c][1], x[c][2], x[c][3], out + c, 4);
}

/* Append base + i for each i < FLOATS_N with scores[i] >= threshold. Returns how many. May write all FLOATS_N places of
 * `out`. */
static inline size_t floats_append_ge(const float *scores, floats threshold, uint32_t base, uint32_t *out)
{
  __mmask16 hits = _mm512_cmp_ps_mask(_mm512_loadu_ps(scores), threshold, _CMP_GE_OQ);

  if (!hits)
    return 0;
  __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i index = _mm512_add_epi32(lane, _mm512_set1_epi32((int)base));
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(hits, index));
  return (size_t)__builtin_popcount(hits);
}

#endif
