/* SPDX-License-Identifier: Apache-2.0 */
/* pq_scan() over registers of 64 codes. Include it after pq_filter_512.h. Private to the variant files.
 *
 * A table stays in registers for a whole row, and the sums stay in the L1 cache. A row is a page, and
 * hardware prefetchers do not foresee the next one; so each cache line of a row prefetches the same line of the next
 * row.
 */
#ifndef KERNELS_X86_PQ_SCAN_512_H
#define KERNELS_X86_PQ_SCAN_512_H

/* Add a table's entries to the sums of n items, and prefetch the next row. */
static inline void pq_scan_row(const uint8_t *table, const uint8_t *row, const uint8_t *next_row, size_t n,
                               uint8_t *sums)
{
  struct pq_table t = pq_table_load(table);

  for (size_t i = 0; i < n; i += PQ_ITEMS) {
    _mm_prefetch((const char *)next_row + i, _MM_HINT_T0);
    __m512i entries = pq_look_up(&t, _mm512_loadu_si512(row + i));
    _mm512_store_si512(sums + i, _mm512_adds_epu8(_mm512_load_si512(sums + i), entries));
  }
}

static inline size_t pq_scan_512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                                 const uint8_t *codes, size_t n, uint8_t limit, const uint64_t *admitted,
                                 const uint8_t *next, uint32_t *indices)
{
  _Alignas(64) uint8_t sums[PQ_BLOCK_ITEMS];
  size_t found = 0;

  for (size_t i = 0; i < n; i += PQ_ITEMS)
    _mm512_store_si512(sums + i, _mm512_setzero_si512());
  for (size_t t = 0; t < n_tables; t++) {
    const uint8_t *row = codes + (size_t)rows[t] * PQ_BLOCK_ITEMS, *next_row = row;
    if (t + 1 < n_tables)
      next_row = codes + (size_t)rows[t + 1] * PQ_BLOCK_ITEMS;
    else if (next)
      next_row = next + (size_t)rows[0] * PQ_BLOCK_ITEMS;
    pq_scan_row(tables[t], row, next_row, n, sums);
  }
  for (size_t i = 0; i < n; i += PQ_ITEMS)
    found += pq_append(_mm512_load_si512(sums + i), limit, admitted ? admitted[i / PQ_ITEMS] : UINT64_MAX, i, n - i,
                       indices + found);
  return found;
}

#endif
