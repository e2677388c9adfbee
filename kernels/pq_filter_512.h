/* pq_filter() over vectors of 64 codes: to be included after `struct pq_table`, pq_table_load() and pq_look_up(), which
 * say how a table of 256 bytes lies in registers. Private to the variant files.
 */
#ifndef KERNELS_PQ_FILTER_512_H
#define KERNELS_PQ_FILTER_512_H

enum { PQ_LANES = 64, PQ_VECS = 4 }; /* a table that was loaded serves so many vectors */

struct pq_rows {
  const uint8_t *const *tables;
  const uint8_t *rows;
  size_t stride;
};

/* Add the levels of the tables from `first` to `last` - 1 to the sums of n_vecs vectors of items; n_vecs is a constant
 * where it is called, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void pq_add(const struct pq_rows *r, size_t first, size_t last,
                                                         const uint8_t *codes, int n_vecs, __m512i *sums)
{
  for (size_t t = first; t < last; t++) {
    struct pq_table table = pq_table_load(r->tables[t]);
    const uint8_t *row = codes + r->rows[t] * r->stride;
    UNROLL for (int v = 0; v < n_vecs; v++)
    {
      __m512i c = _mm512_loadu_si512(row + v * PQ_LANES);
      sums[v] = _mm512_adds_epu8(sums[v], pq_look_up(&table, c));
    }
  }
}

static inline uint64_t pq_survivors(__m512i sum, uint8_t limit)
{
  return _mm512_cmple_epu8_mask(sum, _mm512_set1_epi8((char)limit));
}

/* The tables that are left for one vector of n > 0 items, and the indices of those that pass. */
static inline __attribute__((always_inline)) size_t pq_finish(const struct pq_rows *r, size_t n_first, size_t n_tables,
                                                              const uint8_t *codes, size_t first, size_t n,
                                                              uint8_t limit, __m512i sum, uint32_t *indices)
{
  size_t found = 0;

  if (pq_survivors(sum, limit) == 0)
    return 0;
  pq_add(r, n_first, n_tables, codes + first, 1, &sum);
  uint64_t mask = pq_survivors(sum, limit);
  if (n < PQ_LANES)
    mask &= (UINT64_C(1) << n) - 1;
  for (; mask; mask &= mask - 1)
    indices[found++] = (uint32_t)first + (uint32_t)__builtin_ctzll(mask);
  return found;
}

static inline size_t pq_filter_512(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                                   const uint8_t *codes, size_t stride, size_t n, uint8_t base, uint8_t limit,
                                   uint32_t *indices)
{
  struct pq_rows r = { tables, rows, stride };
  size_t found = 0, i = 0, n_first = pq_filter_first_tables(n_tables);
  __m512i start = _mm512_set1_epi8((char)base), sums[PQ_VECS];

  for (; n - i >= PQ_VECS * PQ_LANES; i += PQ_VECS * PQ_LANES) {
    UNROLL for (int v = 0; v < PQ_VECS; v++) sums[v] = start;
    pq_add(&r, 0, n_first, codes + i, PQ_VECS, sums);
    UNROLL for (int v = 0; v < PQ_VECS; v++)
    {
      size_t first = i + (size_t)v * PQ_LANES;
      found += pq_finish(&r, n_first, n_tables, codes, first, PQ_LANES, limit, sums[v], indices + found);
    }
  }
  for (; i < n; i += PQ_LANES) {
    sums[0] = start;
    pq_add(&r, 0, n_first, codes + i, 1, sums);
    found += pq_finish(&r, n_first, n_tables, codes, i, n - i, limit, sums[0], indices + found);
  }
  return found;
}

#endif
