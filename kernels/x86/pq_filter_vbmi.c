/* SPDX-License-Identifier: Apache-2.0 */
/* pq_filter(), pq_cells() and pq_scan() with AVX-512 VBMI. */
#include <immintrin.h>

#include "kernels/pq_filter.h"
#include "kernels/variants.h"

#include "kernels/x86/pq_table_vbmi.h"

#include "kernels/x86/pq_filter_512.h"
#include "kernels/x86/pq_cells_512.h"
#include "kernels/x86/pq_scan_512.h"

size_t pq_filter_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  return pq_filter_512(tables, rows, n_tables, codes, stride, n, base, limit, indices);
}

size_t pq_scan_vbmi(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                    const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices)
{
  return pq_scan_512(tables, rows, n_tables, n, limit, admitted, next, indices);
}

size_t pq_cells_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                     size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices)
{
  if (n_tables == PQ_RESIDENT_TABLES)
    return pq_cells_512(tables, rows, pieces, n, next, n_next, limit, indices);
  return pq_cells_by(pq_filter_vbmi, tables, rows, n_tables, pieces, n, next, n_next, limit, indices);
}
