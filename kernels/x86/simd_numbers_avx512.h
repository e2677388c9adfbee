/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD registers of integers and doubles with AVX-512. */
#ifndef KERNELS_X86_SIMD_NUMBERS_AVX512_H
#define KERNELS_X86_SIMD_NUMBERS_AVX512_H

#include "kernels/x86/simd_avx512.h"

typedef __m512i ints;
typedef __m512d doubles;

enum { INTS_BYTES = 64, INTS_N = 16, DOUBLES_N = 8 };

static inline ints ints_load(const void *p)
{
  return _mm512_loadu_si512(p);
}

static inline void ints_store(void *p, ints v)
{
  _mm512_storeu_si512(p, v);
}

static inline ints ints_set1(uint32_t x)
{
  return _mm512_set1_epi32((int)x);
}

static inline ints ints_add(ints a, ints b)
{
  return _mm512_add_epi32(a, b);
}

static inline ints ints_and(ints a, ints b)
{
  return _mm512_and_si512(a, b);
}

/* One bit for each lane: is it negative? */
static inline unsigned ints_negative(ints v)
{
  return _mm512_movepi32_mask(v);
}

/* Which lanes of four registers are not negative? Bit 16 j + 4 r + i stands for lane 4 j + i of register r. */
static inline uint64_t ints_hits_of_four(const ints v[4])
{
  ints bytes = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));

  return ~_cvtmask64_u64(_mm512_movepi8_mask(bytes));
}

/* Bytes 0 and 2 of each 32 bits, as unsigned 16-bit numbers. */
static inline ints ints_even_bytes(ints v)
{
  return _mm512_and_si512(v, _mm512_set1_epi32(0x00ff00ff));
}

/* Bytes 1 and 3. */
static inline ints ints_odd_bytes(ints v)
{
  return _mm512_srli_epi16(v, 8);
}

/* The same bytes, as signed 16-bit numbers. */
static inline ints ints_even_signed_bytes(ints v)
{
  return _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8);
}

static inline ints ints_odd_signed_bytes(ints v)
{
  return _mm512_srai_epi16(v, 8);
}

/* In each lane, the sum of the products of two pairs of signed 16-bit numbers. */
static inline ints ints_multiply_pairs(ints a, ints b)
{
  return _mm512_madd_epi16(a, b);
}

/* In each 128 bits, the lower or the upper halves of a and b, by turns: numbers of 32 or of 64 bits. */
static inline ints ints_low_32(ints a, ints b)
{
  return _mm512_unpacklo_epi32(a, b);
}

static inline ints ints_high_32(ints a, ints b)
{
  return _mm512_unpackhi_epi32(a, b);
}

static inline ints ints_low_64(ints a, ints b)
{
  return _mm512_unpacklo_epi64(a, b);
}

static inline ints ints_high_64(ints a, ints b)
{
  return _mm512_unpackhi_epi64(a, b);
}

/* 16 bytes from each of at[0], at[step], at[2 * step], ... */
static inline ints ints_load_pieces(const uint8_t *const *at, size_t step, size_t offset)
{
  ints v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(at[0] + offset)));

  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_loadu_si128((const __m128i *)(at[step] + offset)));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_loadu_si128((const __m128i *)(at[2 * step] + offset)));
  return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_loadu_si128((const __m128i *)(at[3 * step] + offset)));
}

/* The sum of all 128 bits, lane by lane. */
static inline __m128i ints_add_pieces(ints v)
{
  __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));

  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

static inline floats ints_to_floats(ints v)
{
  return _mm512_cvtepi32_ps(v);
}

static inline doubles doubles_zero(void)
{
  return _mm512_setzero_pd();
}

static inline doubles doubles_load(const double *p)
{
  return _mm512_loadu_pd(p);
}

static inline void doubles_store(double *p, doubles v)
{
  _mm512_storeu_pd(p, v);
}

static inline doubles doubles_from_floats(const float *p)
{
  return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}

static inline doubles doubles_fma(doubles a, doubles b, doubles c)
{
  return _mm512_fmadd_pd(a, b, c);
}

static inline doubles doubles_add(doubles a, doubles b)
{
  return _mm512_add_pd(a, b);
}

static inline doubles doubles_set1(double x)
{
  return _mm512_set1_pd(x);
}

static inline doubles doubles_sub(doubles a, doubles b)
{
  return _mm512_sub_pd(a, b);
}

static inline doubles doubles_mul(doubles a, doubles b)
{
  return _mm512_mul_pd(a, b);
}

static inline doubles doubles_div(doubles a, doubles b)
{
  return _mm512_div_pd(a, b);
}

/* a > b ? a : b, so b if one is NaN. doubles_min() likewise. */
static inline doubles doubles_max(doubles a, doubles b)
{
  return _mm512_max_pd(a, b);
}

static inline doubles doubles_min(doubles a, doubles b)
{
  return _mm512_min_pd(a, b);
}

/* x times 2^n, where n is in the low bits of `shifted`. */
static inline doubles doubles_scale(doubles x, doubles shifted)
{
  return _mm512_castsi512_pd(
      _mm512_add_epi64(_mm512_castpd_si512(x), _mm512_slli_epi64(_mm512_castpd_si512(shifted), 52)));
}

/* Round to DOUBLES_N floats. */
static inline void doubles_store_floats(float *p, doubles v)
{
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(v));
}

#endif
