/* SPDX-License-Identifier: Apache-2.0 */
/* select_range_i64() and select_range_u8() with AVX2. */
#include <immintrin.h>

#include "kernels/variants.h"

/* Bit i of the result: the i-th of four values is outside the range. */
static inline uint64_t outside(const int64_t *values, __m256i low, __m256i high)
{
  __m256i v = _mm256_loadu_si256((const __m256i *)values);
  __m256i is_outside = _mm256_or_si256(_mm256_cmpgt_epi64(low, v), _mm256_cmpgt_epi64(v, high));

  return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(is_outside));
}

static void select_range_i64_avx2(const int64_t *values, size_t n_words, int64_t low, int64_t high, uint64_t *words)
{
  __m256i lows = _mm256_set1_epi64x(low), highs = _mm256_set1_epi64x(high);

  for (size_t w = 0; w < n_words; w++, values += 64) {
    uint64_t word = 0;
    UNROLL for (int i = 0; i < 16; i++) word |= outside(values + i * 4, lows, highs) << (i * 4);
    words[w] = ~word;
  }
}

/* Bit i of the result: the i-th of 32 values is in the range. low <= v <= high is the same as v - low <= high - low
 * without signs. */
static inline uint64_t inside(const uint8_t *values, __m256i low, __m256i length)
{
  __m256i v = _mm256_sub_epi8(_mm256_loadu_si256((const __m256i *)values), low);

  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(v, length), v));
}

static void select_range_u8_avx2(const uint8_t *values, size_t n_words, uint8_t low, uint8_t high, uint64_t *words)
{
  __m256i lows = _mm256_set1_epi8((char)low), lengths = _mm256_set1_epi8((char)(high - low));

  for (size_t w = 0; w < n_words; w++, values += 64)
    words[w] = inside(values, lows, lengths) | inside(values + 32, lows, lengths) << 32;
}

void variant_select_avx2(struct kernels *table)
{
  table->select_range_i64 = select_range_i64_avx2;
  table->select_range_u8 = select_range_u8_avx2;
}
