/* pq_filter() with AVX2: a table of 256 bytes is 16 tables of 16 for the byte shuffle, which looks up by the low half
 * of a code; the four bits of its high half choose between the 16 results. */
#include <immintrin.h>

#include "kernels/pq_filter.h"
#include "kernels/variants.h"

enum { LANES = 32 };

/* Bit 7 of each byte of `choice` set: b, else a. */
static inline __m256i choose(__m256i a, __m256i b, __m256i choice)
{
  return _mm256_blendv_epi8(a, b, choice);
}

/* Results of the four tables from `table` on. */
static inline __m256i look_up_quarter(const uint8_t *table, __m256i low, __m256i bit4, __m256i bit5)
{
  __m256i found[4];

  UNROLL for (int i = 0; i < 4; i++)
  {
    __m128i part = _mm_loadu_si128((const __m128i *)(table + 16 * i));
    found[i] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(part), low);
  }
  return choose(choose(found[0], found[1], bit4), choose(found[2], found[3], bit4), bit5);
}

static inline __m256i look_up(const uint8_t *table, __m256i codes)
{
  __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
  __m256i bit4 = _mm256_slli_epi16(codes, 3), bit5 = _mm256_slli_epi16(codes, 2), bit6 = _mm256_slli_epi16(codes, 1);
  __m256i quarter0 = look_up_quarter(table, low, bit4, bit5), quarter1 = look_up_quarter(table + 64, low, bit4, bit5);
  __m256i quarter2 = look_up_quarter(table + 128, low, bit4, bit5);
  __m256i quarter3 = look_up_quarter(table + 192, low, bit4, bit5);

  return choose(choose(quarter0, quarter1, bit6), choose(quarter2, quarter3, bit6), codes);
}

static inline uint32_t survivors(const uint8_t *const *tables, size_t n_tables, const uint8_t *codes, size_t stride,
                                 uint8_t base, uint8_t limit)
{
  __m256i sum = _mm256_set1_epi8((char)base), bound = _mm256_set1_epi8((char)limit);

  for (size_t t = 0; t < n_tables; t++)
    sum = _mm256_adds_epu8(sum, look_up(tables[t], _mm256_loadu_si256((const __m256i *)(codes + t * stride))));
  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, bound), sum));
}

size_t pq_filter_avx2(const uint8_t *const *tables, size_t n_tables, const uint8_t *codes, size_t stride, size_t n,
                      uint8_t base, uint8_t limit, uint32_t *indices)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i += LANES) {
    uint32_t mask = survivors(tables, n_tables, codes + i, stride, base, limit);
    if (n - i < LANES)
      mask &= (1u << (n - i)) - 1;
    for (; mask; mask &= mask - 1)
      indices[found++] = (uint32_t)i + (uint32_t)__builtin_ctz(mask);
  }
  return found;
}
