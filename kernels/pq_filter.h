/* SPDX-License-Identifier: Apache-2.0 */
/* The pq_ kernels of each level; the variants put them into the tables. Private to kernels/. */
#ifndef KERNELS_PQ_FILTER_H
#define KERNELS_PQ_FILTER_H

#include "kernels/kernels.h"

/* Return how many tables to look up before testing whether all items of a register are above the limit. With large
 * entries first most registers can stop there. Testing more often costs more than it saves. */
static inline size_t pq_filter_first_tables(size_t n_tables)
{
  return n_tables - n_tables * 3 / 8;
}

/* Prefetch a piece's codes in n_tables rows. */
static inline void pq_prefetch(const struct pq_piece *p, size_t n_tables)
{
  enum { LINE = 64 };
  const uint8_t *end = p->codes + n_tables * p->stride;
  size_t step = p->stride < LINE ? LINE : p->stride;

  for (const uint8_t *at = p->codes - ((uintptr_t)p->codes & (LINE - 1)); at < end; at += step)
    __builtin_prefetch(at);
}

typedef size_t (*pq_filter_fn)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                               size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

/* pq_cells() by a level's pq_filter(). */
static inline __attribute__((always_inline)) size_t pq_cells_by(pq_filter_fn filter, const uint8_t *const *tables,
                                                                const uint8_t *rows, size_t n_tables,
                                                                const struct pq_piece *pieces, size_t n,
                                                                const struct pq_piece *next, size_t n_next,
                                                                uint8_t limit, uint32_t *indices)
{
  size_t found = 0;

  for (size_t i = 0; i < n || i < n_next; i++) {
    if (i < n_next)
      pq_prefetch(&next[i], n_tables);
    if (i >= n)
      continue;
    size_t passed = filter(tables, rows, n_tables, pieces[i].codes, pieces[i].stride, pieces[i].n, pieces[i].base,
                           limit, indices + found);
    for (; passed > 0; passed--)
      indices[found++] += (uint32_t)(i * PQ_PIECE_ITEMS);
  }
  return found;
}

size_t pq_filter_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                     size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                        size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

size_t pq_cells_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                    size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices);
size_t pq_cells_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                     size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices);
size_t pq_cells_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                       const struct pq_piece *pieces, size_t n, const struct pq_piece *next, size_t n_next,
                       uint8_t limit, uint32_t *indices);
size_t pq_cells_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                     size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices);

size_t pq_best_ref(const float *scores, const uint32_t *lengths, size_t n, float lane_best[PQ_LANES], float *largest);
size_t pq_best_avx512(const float *scores, const uint32_t *lengths, size_t n, float lane_best[PQ_LANES],
                      float *largest);

uint64_t pq_levels_ref(const float *scores, float best, float scale, const uint32_t *lengths, size_t n_lengths,
                       uint8_t *table);
uint64_t pq_levels_avx512(const float *scores, float best, float scale, const uint32_t *lengths, size_t n_lengths,
                          uint8_t *table);

size_t pq_scan_ref(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                   const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);
size_t pq_scan_avx2(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                    const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);
size_t pq_scan_avx512(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n,
                      uint8_t limit, const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);
size_t pq_scan_vbmi(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                    const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);

void pq_gather_ref(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n, uint8_t *block);
void pq_gather_avx2(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n, uint8_t *block);

#endif
