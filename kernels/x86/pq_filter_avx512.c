/* SPDX-License-Identifier: Apache-2.0 */
/* The pq_ kernels with AVX-512BW, which looks up words but not bytes. A table of 256 bytes is 128 words in four
 * registers. Bit 7 of a code selects two of them, bits 1 to 6 a word in these two, bit 0 a byte of the word. Codes
 * at even and at odd places are looked up separately; then the bytes are interleaved again. */
#include <math.h>

#include "kernels/pq_filter.h"
#include "kernels/x86/pq_table_512.h"

/* Look up a word for each index (its low 6 bits) in the upper or the lower half of the table. */
static inline __m512i look_up_words(const struct pq_table *t, __m512i index, __mmask32 is_upper)
{
  __m512i lower = _mm512_permutex2var_epi16(t->parts[0], index, t->parts[1]);
  __m512i upper = _mm512_permutex2var_epi16(t->parts[2], index, t->parts[3]);

  return _mm512_mask_blend_epi16(is_upper, lower, upper);
}

static inline __m512i pq_look_up(const struct pq_table *t, __m512i codes)
{
  const __mmask64 odd = UINT64_C(0xaaaaaaaaaaaaaaaa);
  __mmask64 second_byte = _mm512_test_epi8_mask(codes, _mm512_set1_epi8(1));
  __m512i at_even =
      look_up_words(t, _mm512_srli_epi16(codes, 1), _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x80)));
  __m512i at_odd = look_up_words(t, _mm512_srli_epi16(codes, 9), _mm512_movepi16_mask(codes));
  __m512i first = _mm512_mask_blend_epi8(odd, at_even, _mm512_slli_epi16(at_odd, 8));
  __m512i second = _mm512_mask_blend_epi8(odd, _mm512_srli_epi16(at_even, 8), at_odd);

  return _mm512_mask_blend_epi8(second_byte, first, second);
}

/* Entries of 32 codes, one in each word. */
static inline __m512i pq_look_up_few(const struct pq_table *t, __m512i codes)
{
  __m512i words = look_up_words(t, _mm512_srli_epi16(codes, 1), _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x80)));

  words = _mm512_mask_srli_epi16(words, _mm512_test_epi16_mask(codes, _mm512_set1_epi16(1)), words, 8);
  return _mm512_and_si512(words, _mm512_set1_epi16(0xff));
}

#include "kernels/x86/pq_filter_512.h"
#include "kernels/x86/pq_scan_512.h"

size_t pq_filter_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                        size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  return pq_filter_512(tables, rows, n_tables, codes, stride, n, base, limit, indices);
}

size_t pq_scan_avx512(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n,
                      uint8_t limit, const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices)
{
  return pq_scan_512(tables, rows, n_tables, n, limit, admitted, next, indices);
}

size_t pq_cells_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                       const struct pq_piece *pieces, size_t n, const struct pq_piece *next, size_t n_next,
                       uint8_t limit, uint32_t *indices)
{
  return pq_cells_by(pq_filter_avx512, tables, rows, n_tables, pieces, n, next, n_next, limit, indices);
}

/* The first n - b lanes of a register, at most all. */
static inline __mmask16 lanes_left(size_t n, size_t b)
{
  return (__mmask16)(b + 16 <= n ? 0xffff : b < n ? (1u << (n - b)) - 1 : 0);
}

size_t pq_best_avx512(const float *scores, const uint32_t *lengths, size_t n, float lane_best[PQ_LANES], float *largest)
{
  __m512 best = _mm512_set1_ps(-INFINITY), size = _mm512_setzero_ps();
  size_t n_used = 0;

  for (size_t b = 0; b < n; b += 16) {
    __m512i l = _mm512_maskz_loadu_epi32(lanes_left(n, b), lengths + b);
    __mmask16 is_used = _mm512_test_epi32_mask(l, l);
    __m512 x = _mm512_maskz_loadu_ps(is_used, scores + b);
    best = _mm512_mask_max_ps(best, is_used, x, best); /* the second operand if the first is NaN */
    size = _mm512_max_ps(_mm512_abs_ps(x), size);
    n_used += (size_t)__builtin_popcount(is_used);
  }
  _mm512_storeu_ps(lane_best, best);
  *largest = _mm512_reduce_max_ps(size);
  return n_used;
}

uint64_t pq_levels_avx512(const float *scores, float best, float scale, const uint32_t *lengths, size_t n_lengths,
                          uint8_t *table)
{
  __m512i sums = _mm512_setzero_si512();

  for (size_t b = 0; b < PQ_SUBITEMS; b += 16) {
    __m512 level = _mm512_sub_ps(_mm512_set1_ps(best), _mm512_loadu_ps(scores + b));
    level = _mm512_mul_ps(level, _mm512_set1_ps(scale));
    level = _mm512_max_ps(level, _mm512_setzero_ps()); /* the second operand if the first is NaN */
    __m512i levels = _mm512_cvttps_epi32(_mm512_min_ps(level, _mm512_set1_ps(255)));
    _mm_storeu_si128((__m128i *)(table + b), _mm512_cvtepi32_epi8(levels));
    __m512i l = _mm512_maskz_loadu_epi32(lanes_left(n_lengths, b), lengths + b);
    sums = _mm512_add_epi64(sums, _mm512_mul_epu32(l, levels));
    sums = _mm512_add_epi64(sums, _mm512_mul_epu32(_mm512_srli_epi64(l, 32), _mm512_srli_epi64(levels, 32)));
  }
  return (uint64_t)_mm512_reduce_add_epi64(sums);
}
