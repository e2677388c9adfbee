/* SPDX-License-Identifier: Apache-2.0 */
/* select_range_i64(), select_range_u8(), select_set_u8() and list_bits() with AVX-512. A comparison gives the bits of a
 * range: low <= v <= high is the same as v - low <= high - low without signs. */
#include <immintrin.h>

#include "kernels/variants.h"

static void select_range_i64_avx512(const int64_t *values, size_t n_words, int64_t low, int64_t high, uint64_t *words)
{
  __m512i lows = _mm512_set1_epi64(low);
  __m512i lengths = _mm512_set1_epi64((int64_t)((uint64_t)high - (uint64_t)low));

  for (size_t w = 0; w < n_words; w++, values += 64) {
    uint64_t word = 0;
    UNROLL for (int i = 0; i < 8; i++)
    {
      __m512i v = _mm512_sub_epi64(_mm512_loadu_si512(values + i * 8), lows);
      word |= (uint64_t)_mm512_cmple_epu64_mask(v, lengths) << (i * 8);
    }
    words[w] = word;
  }
}

static void select_range_u8_avx512(const uint8_t *values, size_t n_words, uint8_t low, uint8_t high, uint64_t *words)
{
  __m512i lows = _mm512_set1_epi8((char)low), lengths = _mm512_set1_epi8((char)(high - low));

  for (size_t w = 0; w < n_words; w++, values += 64) {
    __m512i v = _mm512_sub_epi8(_mm512_loadu_si512(values), lows);
    words[w] = _mm512_cmple_epu8_mask(v, lengths);
  }
}

/* A value's byte of the set is looked up among the lower or the upper 16, and its bit in a table of powers of two. */
static void select_set_u8_avx512(const uint8_t *values, size_t n_words, const uint8_t set[32], uint64_t *words)
{
  const __m512i lower = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)set));
  const __m512i upper = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(set + 16)));
  const __m512i powers = _mm512_set1_epi64((int64_t)0x8040201008040201);

  for (size_t w = 0; w < n_words; w++, values += 64) {
    __m512i v = _mm512_loadu_si512(values);
    __m512i place = _mm512_and_si512(_mm512_srli_epi16(v, 3), _mm512_set1_epi8(15));
    __m512i byte = _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), _mm512_shuffle_epi8(lower, place),
                                          _mm512_shuffle_epi8(upper, place));
    __m512i bit = _mm512_shuffle_epi8(powers, _mm512_and_si512(v, _mm512_set1_epi8(7)));
    words[w] = _mm512_test_epi8_mask(byte, bit);
  }
}

/* The numbers of single bits: their exponents as doubles. */
static inline __m512i log_2(__m512i bits)
{
  __m512i doubles = _mm512_castpd_si512(_mm512_cvtepu64_pd(bits));

  return _mm512_sub_epi64(_mm512_srli_epi64(doubles, 52), _mm512_set1_epi64(1023));
}

/* One bit of each word at a time: no jump depends on a single bit, which would be mispredicted. */
static size_t list_bits_avx512(const uint64_t *words, size_t n_words, uint32_t first, uint32_t *numbers)
{
  const __m512i steps = _mm512_set_epi64(448, 384, 320, 256, 192, 128, 64, 0);
  size_t n = 0;

  for (size_t w = 0; w < n_words; w += 8) {
    __mmask8 is_word = (__mmask8)(n_words - w < 8 ? (1u << (n_words - w)) - 1 : 0xff);
    __m512i left = _mm512_maskz_loadu_epi64(is_word, words + w);
    __m512i start = _mm512_add_epi64(steps, _mm512_set1_epi64((int64_t)(first + w * 64)));
    for (__mmask8 used = _mm512_test_epi64_mask(left, left); used; used = _mm512_test_epi64_mask(left, left)) {
      __m512i rest = _mm512_and_si512(left, _mm512_sub_epi64(left, _mm512_set1_epi64(1)));
      __m512i found = _mm512_add_epi64(start, log_2(_mm512_xor_si512(left, rest)));
      _mm256_storeu_si256((__m256i *)(numbers + n), _mm256_maskz_compress_epi32(used, _mm512_cvtepi64_epi32(found)));
      n += (size_t)__builtin_popcount(used);
      left = rest;
    }
  }
  return n;
}

void variant_select_avx512(struct kernels *table)
{
  table->select_range_i64 = select_range_i64_avx512;
  table->select_range_u8 = select_range_u8_avx512;
  table->select_set_u8 = select_set_u8_avx512;
  table->list_bits = list_bits_avx512;
}
