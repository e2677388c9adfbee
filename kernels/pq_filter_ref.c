/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference of pq_filter() and pq_scan(). */
#include "kernels/pq_filter.h"

size_t pq_filter_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                     size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++) {
    unsigned sum = base;
    for (size_t t = 0; t < n_tables && sum <= limit; t++)
      sum += tables[t][codes[rows[t] * stride + i]];
    if (sum <= limit)
      indices[found++] = (uint32_t)i;
  }
  return found;
}

size_t pq_scan_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes, size_t n,
                   uint8_t limit, const uint8_t *next, uint32_t *indices)
{
  (void)next;
  return pq_filter_ref(tables, rows, n_tables, codes, PQ_BLOCK_ITEMS, n, 0, limit, indices);
}
