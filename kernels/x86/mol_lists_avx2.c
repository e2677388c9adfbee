/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any() and average_lists() with AVX2: bytes are widened to 16 bits, even and odd ones apart. */
#include <immintrin.h>
#include <string.h>

#include "kernels/variants.h"

typedef __m256i ints;

enum { LANES = 8, TILE_ROWS = 4, TILE_REGS = 2 };

struct item_bytes {
  ints even, odd; /* of each lane's four bytes, as unsigned 16 bits */
};

struct row_bytes {
  ints even, odd; /* signed */
};

static inline ints ints_load(const uint8_t *p)
{
  return _mm256_loadu_si256((const __m256i *)p);
}

static inline void ints_store(int32_t *p, ints v)
{
  _mm256_storeu_si256((__m256i *)p, v);
}

static inline ints ints_set1(int32_t x)
{
  return _mm256_set1_epi32(x);
}

static inline ints ints_and(ints a, ints b)
{
  return _mm256_and_si256(a, b);
}

/* One bit a lane: it is below 0. */
static inline unsigned ints_negative(ints v)
{
  return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(v));
}

static inline struct item_bytes item_bytes_load(const uint8_t *p)
{
  ints x = ints_load(p);

  return (struct item_bytes){ _mm256_and_si256(x, _mm256_set1_epi16(255)), _mm256_srli_epi16(x, 8) };
}

static inline struct row_bytes row_bytes_load(const int8_t *p)
{
  int32_t bytes;

  memcpy(&bytes, p, sizeof bytes);
  ints x = _mm256_set1_epi32(bytes);
  return (struct row_bytes){ _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(x, 8) };
}

static inline ints add_dot_words(ints sums, ints x, ints row)
{
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, row));
}

static inline ints add_dot_bytes(ints sums, struct item_bytes x, struct row_bytes row)
{
  return add_dot_words(add_dot_words(sums, x.even, row.even), x.odd, row.odd);
}

#include "kernels/x86/simd_lists.h"

void mol_lists_avx2(struct kernels *table)
{
  fill_lists(table);
}
