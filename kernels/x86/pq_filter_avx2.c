/* SPDX-License-Identifier: Apache-2.0 */
/* The pq_ kernels with AVX2. The byte shuffle looks up tables of 16 bytes, so a table of 256 bytes is 16 of those. The
 * low four bits of a code look it up in all 16; the high four bits select among the 16 results. */
#include <immintrin.h>

#include "kernels/pq_filter.h"
#include "kernels/variants.h"

enum {
  LANES = 32,
  FEW_ASKED = 6, /* so few items of a register are looked up faster one by one */
};

/* For each byte: b if bit 7 of `choice` is set, else a. */
static inline __m256i choose(__m256i a, __m256i b, __m256i choice)
{
  return _mm256_blendv_epi8(a, b, choice);
}

/* Look up in the four tables of 16 from `table` on. */
static inline __m256i look_up_quarter(const uint8_t *table, __m256i low, __m256i bit4, __m256i bit5)
{
  __m256i found[4];

  UNROLL for (int i = 0; i < 4; i++)
  {
    __m128i part = _mm_loadu_si128((const __m128i *)(table + 16 * i));
    found[i] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(part), low);
  }
  return choose(choose(found[0], found[1], bit4), choose(found[2], found[3], bit4), bit5);
}

static inline __m256i look_up(const uint8_t *table, __m256i codes)
{
  __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
  __m256i bit4 = _mm256_slli_epi16(codes, 3), bit5 = _mm256_slli_epi16(codes, 2), bit6 = _mm256_slli_epi16(codes, 1);
  __m256i quarter0 = look_up_quarter(table, low, bit4, bit5), quarter1 = look_up_quarter(table + 64, low, bit4, bit5);
  __m256i quarter2 = look_up_quarter(table + 128, low, bit4, bit5);
  __m256i quarter3 = look_up_quarter(table + 192, low, bit4, bit5);

  return choose(choose(quarter0, quarter1, bit6), choose(quarter2, quarter3, bit6), codes);
}

struct filter {
  const uint8_t *const *tables;
  const uint8_t *const *rows;
  size_t n_tables;
};

/* Add the entries of tables `first` to `last` - 1 for the items from i on. */
static inline __m256i add_entries(const struct filter *f, size_t first, size_t last, size_t i, __m256i sum)
{
  for (size_t t = first; t < last; t++) {
    __m256i row = _mm256_loadu_si256((const __m256i *)(f->rows[t] + i));
    sum = _mm256_adds_epu8(sum, look_up(f->tables[t], row));
  }
  return sum;
}

static inline uint32_t survivors(__m256i sum, uint8_t limit)
{
  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, _mm256_set1_epi8((char)limit)), sum));
}

static inline size_t filter_all(const struct filter *f, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  size_t found = 0, n_first = pq_filter_first_tables(f->n_tables);

  for (size_t i = 0; i < n; i += LANES) {
    __m256i sum = add_entries(f, 0, n_first, i, _mm256_set1_epi8((char)base));
    uint32_t mask = survivors(sum, limit);
    if (mask)
      mask = survivors(add_entries(f, n_first, f->n_tables, i, sum), limit);
    if (n - i < LANES)
      mask &= (1u << (n - i)) - 1;
    for (; mask; mask &= mask - 1)
      indices[found++] = (uint32_t)i + (uint32_t)__builtin_ctz(mask);
  }
  return found;
}

size_t pq_filter_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  const uint8_t *at[PQ_TABLES_MAX];

  for (size_t t = 0; t < n_tables; t++)
    at[t] = codes + rows[t] * stride;
  return filter_all(&(struct filter){ tables, at, n_tables }, n, base, limit, indices);
}

/* Look up some items of the register that begins at item i one by one. asked: their bits. */
static size_t filter_one_by_one(const struct filter *f, size_t i, uint32_t asked, uint8_t limit, uint32_t *indices)
{
  size_t found = 0;

  for (; asked; asked &= asked - 1) {
    size_t item = i + (size_t)__builtin_ctz(asked);
    unsigned sum = 0;
    for (size_t t = 0; t < f->n_tables; t++)
      sum += f->tables[t][f->rows[t][item]];
    indices[found] = (uint32_t)item;
    found += sum <= limit;
  }
  return found;
}

/* pq_scan() with a filter. Items that are not admitted cost nothing if they fill a register, or if they leave few. */
static size_t scan_admitted(const struct filter *f, size_t n, uint8_t limit, const uint64_t *admitted,
                            uint32_t *indices)
{
  size_t found = 0, n_first = pq_filter_first_tables(f->n_tables);

  for (size_t i = 0; i < n; i += LANES) {
    uint32_t asked = (uint32_t)(admitted[i / 64] >> (i % 64));
    if (n - i < LANES)
      asked &= (1u << (n - i)) - 1;
    if (__builtin_popcount(asked) <= FEW_ASKED) {
      found += filter_one_by_one(f, i, asked, limit, indices + found);
      continue;
    }
    __m256i sum = add_entries(f, 0, n_first, i, _mm256_setzero_si256());
    asked &= survivors(sum, limit);
    if (asked)
      asked &= survivors(add_entries(f, n_first, f->n_tables, i, sum), limit);
    for (; asked; asked &= asked - 1)
      indices[found++] = (uint32_t)i + (uint32_t)__builtin_ctz(asked);
  }
  return found;
}

size_t pq_scan_avx2(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                    const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices)
{
  struct filter f = { tables, rows, n_tables };

  (void)next;
  return admitted ? scan_admitted(&f, n, limit, admitted, indices) : filter_all(&f, n, 0, limit, indices);
}

size_t pq_cells_avx2(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                     size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices)
{
  return pq_cells_by(pq_filter_avx2, tables, rows, n_tables, pieces, n, next, n_next, limit, indices);
}
