/* SPDX-License-Identifier: Apache-2.0 */
/* pq_filter() over registers of 64 codes. Include it after the definitions of pq_look_up() and pq_look_up_few(), which
 * look codes up in a table of pq_table_512.h. Private to the variant files.
 */
#ifndef KERNELS_X86_PQ_FILTER_512_H
#define KERNELS_X86_PQ_FILTER_512_H

enum { PQ_ITEMS = 64, PQ_FEW = 32 };

struct pq_rows {
  const uint8_t *const *tables;
  const uint8_t *rows;
  size_t stride;
};

/* Add the entries of tables `first` to `last` - 1 to the sums of 64 items. */
static inline __attribute__((always_inline)) __m512i pq_add(const struct pq_rows *r, size_t first, size_t last,
                                                            const uint8_t *codes, __m512i sums)
{
  for (size_t t = first; t < last; t++) {
    struct pq_table table = pq_table_load(r->tables[t]);
    __m512i c = _mm512_loadu_si512(codes + r->rows[t] * r->stride);
    sums = _mm512_adds_epu8(sums, pq_look_up(&table, c));
  }
  return sums;
}

static inline uint64_t pq_survivors(__m512i sum, uint8_t limit)
{
  return _mm512_cmple_epu8_mask(sum, _mm512_set1_epi8((char)limit));
}

/* Append the indices of the survivors among n > 0 items, of which the first has index `first`. admitted: bits of the
 * items that may survive. */
static inline size_t pq_append(__m512i sum, uint8_t limit, uint64_t admitted, size_t first, size_t n, uint32_t *indices)
{
  uint64_t mask = pq_survivors(sum, limit) & admitted;
  size_t found = 0;

  if (n < PQ_ITEMS)
    mask &= (UINT64_C(1) << n) - 1;
  for (; mask; mask &= mask - 1)
    indices[found++] = (uint32_t)first + (uint32_t)__builtin_ctzll(mask);
  return found;
}

/* Add the entries of tables `first` to `last` - 1 to the 16-bit sums of 32 items. */
static inline __attribute__((always_inline)) __m512i pq_add_few(const struct pq_rows *r, size_t first, size_t last,
                                                                const uint8_t *codes, __m512i sums)
{
  for (size_t t = first; t < last; t++) {
    struct pq_table table = pq_table_load(r->tables[t]);
    __m256i c = _mm256_loadu_si256((const __m256i *)(codes + r->rows[t] * r->stride));
    sums = _mm512_add_epi16(sums, pq_look_up_few(&table, _mm512_cvtepu8_epi16(c)));
  }
  return sums;
}

/* pq_filter() of at most 32 items. It reads no codes after the 32nd, which would cost another cache miss. */
static inline size_t pq_filter_few(const struct pq_rows *r, size_t n_tables, const uint8_t *codes, size_t n,
                                   uint8_t base, uint8_t limit, uint32_t *indices)
{
  const __m512i limits = _mm512_set1_epi16(limit);
  size_t found = 0, n_first = pq_filter_first_tables(n_tables);
  __m512i sums = pq_add_few(r, 0, n_first, codes, _mm512_set1_epi16(base));
  uint32_t mask = _mm512_cmple_epu16_mask(sums, limits);

  if (mask == 0)
    return 0;
  mask = _mm512_cmple_epu16_mask(pq_add_few(r, n_first, n_tables, codes, sums), limits);
  mask &= UINT32_MAX >> (32 - n);
  for (; mask; mask &= mask - 1)
    indices[found++] = (uint32_t)__builtin_ctz(mask);
  return found;
}

static inline size_t pq_filter_512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                                   const uint8_t *codes, size_t stride, size_t n, uint8_t base, uint8_t limit,
                                   uint32_t *indices)
{
  struct pq_rows r = { tables, rows, stride };
  size_t found = 0, n_first = pq_filter_first_tables(n_tables);

  if (n <= PQ_FEW)
    return n ? pq_filter_few(&r, n_tables, codes, n, base, limit, indices) : 0;
  for (size_t i = 0; i < n; i += PQ_ITEMS) {
    __m512i sums = pq_add(&r, 0, n_first, codes + i, _mm512_set1_epi8((char)base));
    if (pq_survivors(sums, limit) == 0)
      continue;
    sums = pq_add(&r, n_first, n_tables, codes + i, sums);
    found += pq_append(sums, limit, UINT64_MAX, i, n - i, indices + found);
  }
  return found;
}

#endif
