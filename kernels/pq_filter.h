/* SPDX-License-Identifier: Apache-2.0 */
/* pq_filter() and pq_scan() of each level; the variants put them into the tables. Private to kernels/. */
#ifndef KERNELS_PQ_FILTER_H
#define KERNELS_PQ_FILTER_H

#include "kernels/kernels.h"

/* Return how many tables to look up before testing whether all items of a register are above the limit. With large
 * entries first most registers can stop there. Testing more often costs more than it saves. */
static inline size_t pq_filter_first_tables(size_t n_tables)
{
  return n_tables - n_tables * 3 / 8;
}

size_t pq_filter_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                     size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                        size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);
size_t pq_filter_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

size_t pq_scan_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes, size_t n,
                   uint8_t limit, const uint8_t *next, uint32_t *indices);
size_t pq_scan_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes, size_t n,
                    uint8_t limit, const uint8_t *next, uint32_t *indices);
size_t pq_scan_avx512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t n, uint8_t limit, const uint8_t *next, uint32_t *indices);
size_t pq_scan_vbmi(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes, size_t n,
                    uint8_t limit, const uint8_t *next, uint32_t *indices);

#endif
