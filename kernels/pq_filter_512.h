/* pq_filter() over vectors of 64 codes: to be included after `struct pq_table`, pq_table_load() and pq_look_up(), which
 * say how a table of 256 bytes lies in registers. Private to the variant files.
 */
#ifndef KERNELS_PQ_FILTER_512_H
#define KERNELS_PQ_FILTER_512_H

enum { PQ_LANES = 64, PQ_VECS = 4 }; /* a table that was loaded serves so many vectors */

/* Sums of n_vecs vectors of items; a constant where it is called, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void pq_sum(const uint8_t *const *tables, size_t n_tables,
                                                         const uint8_t *codes, size_t stride, uint8_t base, int n_vecs,
                                                         __m512i sums[PQ_VECS])
{
  UNROLL for (int v = 0; v < n_vecs; v++) sums[v] = _mm512_set1_epi8((char)base);
  for (size_t t = 0; t < n_tables; t++) {
    struct pq_table table = pq_table_load(tables[t]);
    UNROLL for (int v = 0; v < n_vecs; v++)
    {
      __m512i c = _mm512_loadu_si512(codes + t * stride + v * PQ_LANES);
      sums[v] = _mm512_adds_epu8(sums[v], pq_look_up(&table, c));
    }
  }
}

/* Append the indices of sums that reach no further than the limit, of n > 0 items. */
static inline size_t pq_append(__m512i sum, uint8_t limit, size_t first, size_t n, uint32_t *indices)
{
  uint64_t mask = _mm512_cmple_epu8_mask(sum, _mm512_set1_epi8((char)limit));
  size_t found = 0;

  if (n < PQ_LANES)
    mask &= (UINT64_C(1) << n) - 1;
  for (; mask; mask &= mask - 1)
    indices[found++] = (uint32_t)first + (uint32_t)__builtin_ctzll(mask);
  return found;
}

static inline size_t pq_filter_512(const uint8_t *const *tables, size_t n_tables, const uint8_t *codes, size_t stride,
                                   size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  __m512i sums[PQ_VECS];
  size_t found = 0, i = 0;

  for (; n - i >= PQ_VECS * PQ_LANES; i += PQ_VECS * PQ_LANES) {
    pq_sum(tables, n_tables, codes + i, stride, base, PQ_VECS, sums);
    UNROLL for (int v = 0; v < PQ_VECS; v++)
    {
      size_t first = i + (size_t)v * PQ_LANES;
      found += pq_append(sums[v], limit, first, PQ_LANES, indices + found);
    }
  }
  for (; i < n; i += PQ_LANES) {
    pq_sum(tables, n_tables, codes + i, stride, base, 1, sums);
    found += pq_append(sums[0], limit, i, n - i, indices + found);
  }
  return found;
}

#endif
