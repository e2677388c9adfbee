/* SPDX-License-Identifier: Apache-2.0 */
/* pq_scan() over registers of 64 codes. Include it after pq_filter_512.h. Private to the variant files.
 *
 * A table stays in registers for a whole row, and the sums stay in the L1 cache. A row is a page, and
 * hardware prefetchers do not foresee the next one; so each cache line of a row prefetches the same line of a later
 * row. A row takes about as long as one read from memory, but reads wait for each other: three rows ahead is best where
 * other work has pushed the codes out of the caches, and costs nothing where they are in L3.
 */
#ifndef KERNELS_X86_PQ_SCAN_512_H
#define KERNELS_X86_PQ_SCAN_512_H

enum { PQ_ROWS_AHEAD = 3 };

/* The row that is read PQ_ROWS_AHEAD rows after that of table t, here or in the next block. If it is in a later block
 * still, since there are one or two tables, the same row of the next block. That of table t if there is no next one. */
static inline const uint8_t *pq_row_ahead(const uint8_t *const *rows, size_t n_tables, size_t t,
                                          const uint8_t *const *next)
{
  size_t ahead = t + PQ_ROWS_AHEAD;

  if (ahead < n_tables)
    return rows[ahead];
  return next ? next[ahead % n_tables] : rows[t];
}

/* Add a table's entries to the sums of n items, and prefetch a later row. */
static inline void pq_scan_row(const uint8_t *table, const uint8_t *row, const uint8_t *later, size_t n, uint8_t *sums)
{
  struct pq_table t = pq_table_load(table);

  for (size_t i = 0; i < n; i += PQ_ITEMS) {
    _mm_prefetch((const char *)later + i, _MM_HINT_T0);
    __m512i entries = pq_look_up(&t, _mm512_loadu_si512(row + i));
    _mm512_store_si512(sums + i, _mm512_adds_epu8(_mm512_load_si512(sums + i), entries));
  }
}

static inline size_t pq_scan_512(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n,
                                 uint8_t limit, const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices)
{
  _Alignas(64) uint8_t sums[PQ_BLOCK_ITEMS];
  size_t found = 0;

  for (size_t i = 0; i < n; i += PQ_ITEMS)
    _mm512_store_si512(sums + i, _mm512_setzero_si512());
  for (size_t t = 0; t < n_tables; t++)
    pq_scan_row(tables[t], rows[t], pq_row_ahead(rows, n_tables, t, next), n, sums);
  for (size_t i = 0; i < n; i += PQ_ITEMS)
    found += pq_append(_mm512_load_si512(sums + i), limit, admitted ? admitted[i / PQ_ITEMS] : UINT64_MAX, i, n - i,
                       indices + found);
  return found;
}

#endif
