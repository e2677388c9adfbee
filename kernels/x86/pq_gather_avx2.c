/* SPDX-License-Identifier: Apache-2.0 */
/* pq_gather() with registers of 16 bytes: eight items by eight splits are transposed at a time. */
#include <immintrin.h>

#include "kernels/pq_filter.h"
#include "kernels/variants.h"

enum { TILE = 8, ITEMS_AHEAD = 128 };

/* Interleave the codes of two items, then of four, then of eight. */
static inline void gather_tile(const uint8_t *codes, size_t n_splits, const uint32_t *slots, uint8_t *block)
{
  __m128i two[4], four[4], rows[4];

  UNROLL for (int i = 0; i < 4; i++)
  {
    two[i] = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(codes + slots[2 * i] * n_splits)),
                               _mm_loadl_epi64((const __m128i *)(codes + slots[2 * i + 1] * n_splits)));
  }
  UNROLL for (int i = 0; i < 2; i++)
  {
    four[i] = _mm_unpacklo_epi16(two[2 * i], two[2 * i + 1]);     /* splits 0 to 3 */
    four[2 + i] = _mm_unpackhi_epi16(two[2 * i], two[2 * i + 1]); /* splits 4 to 7 */
  }
  UNROLL for (int i = 0; i < 2; i++)
  {
    rows[2 * i] = _mm_unpacklo_epi32(four[2 * i], four[2 * i + 1]);
    rows[2 * i + 1] = _mm_unpackhi_epi32(four[2 * i], four[2 * i + 1]);
  }
  UNROLL for (size_t i = 0; i < 4; i++)
  {
    _mm_storel_epi64((__m128i *)(block + 2 * i * PQ_BLOCK_ITEMS), rows[i]);
    _mm_storel_epi64((__m128i *)(block + (2 * i + 1) * PQ_BLOCK_ITEMS), _mm_unpackhi_epi64(rows[i], rows[i]));
  }
}

static void prefetch(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n)
{
  for (size_t i = 0; i < n; i++)
    __builtin_prefetch(codes + slots[i] * n_splits);
}

/* Gather the splits from `split` on of up to TILE items. */
static void gather_rest(const uint8_t *codes, size_t n_splits, size_t split, const uint32_t *slots, size_t n,
                        uint8_t *block)
{
  for (size_t i = 0; i < n; i++) {
    for (size_t m = split; m < n_splits; m++)
      block[m * PQ_BLOCK_ITEMS + i] = codes[slots[i] * n_splits + m];
  }
}

void pq_gather_avx2(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n, uint8_t *block)
{
  size_t i = 0;

  prefetch(codes, n_splits, slots, n < ITEMS_AHEAD ? n : ITEMS_AHEAD);
  for (; i + TILE <= n; i += TILE) {
    size_t m = 0;
    if (i + ITEMS_AHEAD + TILE <= n)
      prefetch(codes, n_splits, slots + i + ITEMS_AHEAD, TILE);
    for (; m + TILE <= n_splits; m += TILE)
      gather_tile(codes + m, n_splits, slots + i, block + m * PQ_BLOCK_ITEMS + i);
    gather_rest(codes, n_splits, m, slots + i, TILE, block + i);
  }
  gather_rest(codes, n_splits, 0, slots + i, n - i, block + i);
}
