/* SPDX-License-Identifier: Apache-2.0 */
/* pq_cells() over registers of 64 codes. Include it after pq_filter_512.h. Private to the variant files.
 *
 * Six tables, those of eight splits without a pair, take 24 of the 32 registers, so they are loaded once for all
 * pieces.
 */
#ifndef KERNELS_X86_PQ_CELLS_512_H
#define KERNELS_X86_PQ_CELLS_512_H

enum { PQ_RESIDENT_TABLES = 6 };

/* Load n codes of a row, as `width` bytes. Reading 64 bytes of a short row would cost a cache miss on the next block.
 */
static inline __attribute__((always_inline)) __m512i pq_load_codes(const uint8_t *codes, int width)
{
  if (width == 16)
    return _mm512_zextsi128_si512(_mm_loadu_si128((const __m128i *)codes));
  if (width == 32)
    return _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)codes));
  return _mm512_loadu_si512(codes);
}

/* Return the mask of the survivors of a piece. */
static inline __attribute__((always_inline)) uint64_t pq_piece(const struct pq_table *tables, const uint8_t *rows,
                                                               const struct pq_piece *p, __m512i limits, int width)
{
  const int n_first = 4;
  __m512i sums = _mm512_set1_epi8((char)p->base);

  UNROLL for (int t = 0; t < n_first; t++)
  {
    __m512i codes = pq_load_codes(p->codes + (size_t)rows[t] * p->stride, width);
    sums = _mm512_adds_epu8(sums, pq_look_up(&tables[t], codes));
  }
  uint64_t mask = _mm512_cmple_epu8_mask(sums, limits) & (UINT64_MAX >> (PQ_PIECE_ITEMS - p->n));
  if (mask == 0)
    return 0;
  UNROLL for (int t = n_first; t < PQ_RESIDENT_TABLES; t++)
  {
    __m512i codes = pq_load_codes(p->codes + (size_t)rows[t] * p->stride, width);
    sums = _mm512_adds_epu8(sums, pq_look_up(&tables[t], codes));
  }
  return mask & _mm512_cmple_epu8_mask(sums, limits);
}

/* pq_cells() of six tables. */
static inline size_t pq_cells_512(const uint8_t *const *tables, const uint8_t *rows, const struct pq_piece *pieces,
                                  size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *hits)
{
  const __m512i limits = _mm512_set1_epi8((char)limit);
  struct pq_table resident[PQ_RESIDENT_TABLES];
  size_t found = 0;

  UNROLL for (int t = 0; t < PQ_RESIDENT_TABLES; t++) resident[t] = pq_table_load(tables[t]);
  for (size_t i = 0; i < n; i++) {
    const struct pq_piece *p = &pieces[i];
    uint64_t mask;
    if (i < n_next)
      pq_prefetch(&next[i], PQ_RESIDENT_TABLES);
    if (p->n > 32)
      mask = pq_piece(resident, rows, p, limits, 64);
    else if (p->n > 16)
      mask = pq_piece(resident, rows, p, limits, 32);
    else
      mask = pq_piece(resident, rows, p, limits, 16);
    for (; mask; mask &= mask - 1)
      hits[found++] = (uint32_t)(i * PQ_PIECE_ITEMS) + (uint32_t)__builtin_ctzll(mask);
  }
  for (size_t i = n; i < n_next; i++)
    pq_prefetch(&next[i], PQ_RESIDENT_TABLES);
  return found;
}

#endif
