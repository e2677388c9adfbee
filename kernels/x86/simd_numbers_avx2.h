/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD registers of integers and doubles with AVX2. simd_numbers_avx512.h has the contracts. */
#ifndef KERNELS_X86_SIMD_NUMBERS_AVX2_H
#define KERNELS_X86_SIMD_NUMBERS_AVX2_H

#include "kernels/x86/simd_avx2.h"

typedef __m256i ints;
typedef __m256d doubles;

enum { INTS_BYTES = 32, INTS_N = 8, DOUBLES_N = 4 };

static inline ints ints_load(const void *p)
{
  return _mm256_loadu_si256((const __m256i *)p);
}

static inline void ints_store(void *p, ints v)
{
  _mm256_storeu_si256((__m256i *)p, v);
}

static inline ints ints_set1(uint32_t x)
{
  return _mm256_set1_epi32((int)x);
}

static inline ints ints_add(ints a, ints b)
{
  return _mm256_add_epi32(a, b);
}

static inline ints ints_and(ints a, ints b)
{
  return _mm256_and_si256(a, b);
}

static inline unsigned ints_negative(ints v)
{
  return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(v));
}

static inline uint64_t ints_hits_of_four(const ints v[4])
{
  ints bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));

  return (uint32_t)~_mm256_movemask_epi8(bytes);
}

static inline ints ints_even_bytes(ints v)
{
  return _mm256_and_si256(v, _mm256_set1_epi32(0x00ff00ff));
}

static inline ints ints_odd_bytes(ints v)
{
  return _mm256_srli_epi16(v, 8);
}

static inline ints ints_even_signed_bytes(ints v)
{
  return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}

static inline ints ints_odd_signed_bytes(ints v)
{
  return _mm256_srai_epi16(v, 8);
}

static inline ints ints_multiply_pairs(ints a, ints b)
{
  return _mm256_madd_epi16(a, b);
}

static inline ints ints_low_32(ints a, ints b)
{
  return _mm256_unpacklo_epi32(a, b);
}

static inline ints ints_high_32(ints a, ints b)
{
  return _mm256_unpackhi_epi32(a, b);
}

static inline ints ints_low_64(ints a, ints b)
{
  return _mm256_unpacklo_epi64(a, b);
}

static inline ints ints_high_64(ints a, ints b)
{
  return _mm256_unpackhi_epi64(a, b);
}

static inline ints ints_load_pieces(const uint8_t *const *at, size_t step, size_t offset)
{
  __m128i low = _mm_loadu_si128((const __m128i *)(at[0] + offset));

  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128((const __m128i *)(at[step] + offset)), 1);
}

static inline __m128i ints_add_pieces(ints v)
{
  return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

static inline floats ints_to_floats(ints v)
{
  return _mm256_cvtepi32_ps(v);
}

static inline doubles doubles_zero(void)
{
  return _mm256_setzero_pd();
}

static inline doubles doubles_load(const double *p)
{
  return _mm256_loadu_pd(p);
}

static inline void doubles_store(double *p, doubles v)
{
  _mm256_storeu_pd(p, v);
}

static inline doubles doubles_from_floats(const float *p)
{
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

static inline doubles doubles_fma(doubles a, doubles b, doubles c)
{
  return _mm256_fmadd_pd(a, b, c);
}

static inline doubles doubles_add(doubles a, doubles b)
{
  return _mm256_add_pd(a, b);
}

static inline doubles doubles_set1(double x)
{
  return _mm256_set1_pd(x);
}

static inline doubles doubles_sub(doubles a, doubles b)
{
  return _mm256_sub_pd(a, b);
}

static inline doubles doubles_mul(doubles a, doubles b)
{
  return _mm256_mul_pd(a, b);
}

static inline doubles doubles_div(doubles a, doubles b)
{
  return _mm256_div_pd(a, b);
}

static inline doubles doubles_max(doubles a, doubles b)
{
  return _mm256_max_pd(a, b);
}

static inline doubles doubles_min(doubles a, doubles b)
{
  return _mm256_min_pd(a, b);
}

static inline doubles doubles_scale(doubles x, doubles shifted)
{
  return _mm256_castsi256_pd(
      _mm256_add_epi64(_mm256_castpd_si256(x), _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52)));
}

static inline void doubles_store_floats(float *p, doubles v)
{
  _mm_storeu_ps(p, _mm256_cvtpd_ps(v));
}

#endif
