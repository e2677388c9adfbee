/* SPDX-License-Identifier: Apache-2.0 */
/* The level avx512vnni: AVX-512 VNNI (Cascade Lake and later). It multiplies bytes or 16-bit integers and adds the
 * products in 32 bits. */
#include <immintrin.h>
#include <string.h>

#include "kernels/x86/simd_rows.h"

/* dot_i8 of one query -------------------- */

enum {
  ROW_BYTES = SKETCH_BLOCK_ITEMS * SKETCH_GROUP, /* one register */
  TILE_BLOCKS = 8,                               /* blocks in a tile */
  CHUNK_GROUPS = 256,                            /* groups of the query that are split at a time */
};

/* Some of the query's numbers as signed bytes: number = 256 * high + low. */
struct byte_query {
  int8_t high[CHUNK_GROUPS * SKETCH_GROUP];
  int8_t low[CHUNK_GROUPS * SKETCH_GROUP];
  size_t n_groups;
};

/* Split the numbers of n_groups groups. Zeros follow, up to a whole register. Returns their sum. */
static int32_t split_bytes(const int16_t *query, size_t n_groups, struct byte_query *out)
{
  enum { NUMBERS = 32 }; /* in a register */
  __m512i sum = _mm512_setzero_si512();
  size_t n = n_groups * SKETCH_GROUP;

  out->n_groups = n_groups;
  for (size_t k = 0; k < (n + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES; k += NUMBERS) {
    __mmask32 mask = n < k + NUMBERS ? n > k ? (1u << (n - k)) - 1 : 0 : UINT32_MAX;
    __m512i numbers = _mm512_maskz_loadu_epi16(mask, query + k);
    __m512i high = _mm512_srai_epi16(_mm512_add_epi16(numbers, _mm512_set1_epi16(128)), 8);
    _mm256_storeu_si256((__m256i *)(out->low + k), _mm512_cvtepi16_epi8(numbers));
    _mm256_storeu_si256((__m256i *)(out->high + k), _mm512_cvtepi16_epi8(high));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(numbers, _mm512_set1_epi16(1)));
  }
  return _mm512_reduce_add_epi32(sum);
}

TILE __m512i broadcast(const int8_t *group)
{
  int32_t bytes;

  __builtin_memcpy(&bytes, group, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

/* Add the products of unsigned and signed bytes, four to a lane. In assembler, because gcc copies the sums before and
 * after each _mm512_dpbusd_epi32(), and the copies take half the time. */
TILE void add_products(__m512i *sums, __m512i bytes, __m512i numbers)
{
  __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(bytes), "v"(numbers));
}

/* Add one query's products to the sums of n blocks. */
TILE void bytes_tile(const struct byte_query *query, const uint8_t *blocks, size_t block_bytes, int n, int32_t start,
                     int32_t *sums)
{
  __m512i high[TILE_BLOCKS], low[TILE_BLOCKS];

  UNROLL for (int i = 0; i < n; i++)
  {
    high[i] = _mm512_setzero_si512();
    low[i] = _mm512_add_epi32(_mm512_loadu_si512(sums + i * SKETCH_BLOCK_ITEMS), _mm512_set1_epi32(start));
  }
  for (size_t g = 0; g < query->n_groups; g++) {
    __m512i q_high = broadcast(query->high + g * SKETCH_GROUP), q_low = broadcast(query->low + g * SKETCH_GROUP);
    UNROLL for (int i = 0; i < n; i++)
    {
      __m512i bytes = _mm512_load_si512(blocks + (size_t)i * block_bytes + g * ROW_BYTES);
      add_products(&high[i], bytes, q_high);
      add_products(&low[i], bytes, q_low);
    }
  }
  UNROLL for (int i = 0; i < n; i++)
      _mm512_storeu_si512(sums + i * SKETCH_BLOCK_ITEMS, _mm512_add_epi32(_mm512_slli_epi32(high[i], 8), low[i]));
}

/* The bytes are 128 too large, so sums start at -128 times the sum of the query's numbers. A sum may overflow on the
 * way: additions wrap, and the final sum fits. */
static void dot_i8_of_one(const int16_t *query, size_t n_groups, const uint8_t *blocks, size_t n_blocks, int32_t *sums)
{
  const size_t block_bytes = n_groups * ROW_BYTES;
  struct byte_query split;

  memset(sums, 0, n_blocks * SKETCH_BLOCK_ITEMS * sizeof *sums);
  for (size_t g = 0; g < n_groups; g += CHUNK_GROUPS) {
    const uint8_t *from = blocks + g * ROW_BYTES;
    size_t n = n_groups - g < CHUNK_GROUPS ? n_groups - g : CHUNK_GROUPS, b = 0;
    int32_t start = -128 * split_bytes(query + g * SKETCH_GROUP, n, &split);
    for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
      bytes_tile(&split, from + b * block_bytes, block_bytes, TILE_BLOCKS, start, sums + b * SKETCH_BLOCK_ITEMS);
    for (; b < n_blocks; b++)
      bytes_tile(&split, from + b * block_bytes, block_bytes, 1, start, sums + b * SKETCH_BLOCK_ITEMS);
  }
}

/* dot_i8 of two queries, and of many -------------------- */

enum { PAIR_BLOCKS = 4 }; /* blocks in a tile of two queries */

/* Add two queries' products to the sums of n blocks. */
TILE void pair_tile(const struct byte_query query[2], const uint8_t *blocks, size_t block_bytes, int n,
                    const int32_t start[2], int32_t *const sums[2], size_t at)
{
  __m512i high[2][PAIR_BLOCKS], low[2][PAIR_BLOCKS];

  UNROLL for (int q = 0; q < 2; q++)
  {
    UNROLL for (int i = 0; i < n; i++)
    {
      __m512i sum = _mm512_loadu_si512(sums[q] + at + i * SKETCH_BLOCK_ITEMS);
      high[q][i] = _mm512_setzero_si512();
      low[q][i] = _mm512_add_epi32(sum, _mm512_set1_epi32(start[q]));
    }
  }
  for (size_t g = 0; g < query[0].n_groups; g++) {
    __m512i bytes[PAIR_BLOCKS];
    UNROLL for (int i = 0; i < n; i++) bytes[i] = _mm512_load_si512(blocks + (size_t)i * block_bytes + g * ROW_BYTES);
    UNROLL for (int q = 0; q < 2; q++)
    {
      __m512i q_high = broadcast(query[q].high + g * SKETCH_GROUP), q_low = broadcast(query[q].low + g * SKETCH_GROUP);
      UNROLL for (int i = 0; i < n; i++)
      {
        add_products(&high[q][i], bytes[i], q_high);
        add_products(&low[q][i], bytes[i], q_low);
      }
    }
  }
  UNROLL for (int q = 0; q < 2; q++)
  {
    UNROLL for (int i = 0; i < n; i++) _mm512_storeu_si512(
        sums[q] + at + i * SKETCH_BLOCK_ITEMS, _mm512_add_epi32(_mm512_slli_epi32(high[q][i], 8), low[q][i]));
  }
}

static void dot_i8_of_pair(const int16_t *const queries[2], size_t n_groups, const uint8_t *blocks, size_t n_blocks,
                           int32_t *const sums[2])
{
  const size_t block_bytes = n_groups * ROW_BYTES;
  struct byte_query split[2];
  int32_t start[2];

  for (int q = 0; q < 2; q++)
    memset(sums[q], 0, n_blocks * SKETCH_BLOCK_ITEMS * sizeof *sums[q]);
  for (size_t g = 0; g < n_groups; g += CHUNK_GROUPS) {
    const uint8_t *from = blocks + g * ROW_BYTES;
    size_t n = n_groups - g < CHUNK_GROUPS ? n_groups - g : CHUNK_GROUPS, b = 0;
    for (int q = 0; q < 2; q++)
      start[q] = -128 * split_bytes(queries[q] + g * SKETCH_GROUP, n, &split[q]);
    for (; b + PAIR_BLOCKS <= n_blocks; b += PAIR_BLOCKS)
      pair_tile(split, from + b * block_bytes, block_bytes, PAIR_BLOCKS, start, sums, b * SKETCH_BLOCK_ITEMS);
    for (; b < n_blocks; b++)
      pair_tile(split, from + b * block_bytes, block_bytes, 1, start, sums, b * SKETCH_BLOCK_ITEMS);
  }
}

static void dot_i8_vnni(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                        size_t n_blocks, int32_t *const *sums)
{
  size_t q = 0;

  for (; q + 2 <= n_queries; q += 2)
    dot_i8_of_pair(queries + q, n_groups, blocks, n_blocks, sums + q);
  if (q < n_queries)
    dot_i8_of_one(queries[q], n_groups, blocks, n_blocks, sums[q]);
}

/* dot_i8_rows -------------------- */

enum { TILE_ROWS = 8 }; /* items in a tile */

/* Sum all lanes of each of eight registers: pairs of lanes first, then halves of registers. */
TILE __m256i sum_lanes(const __m512i sums[TILE_ROWS])
{
  __m512i pairs[4], fours[2], low, high, both;

  UNROLL for (int i = 0; i < 4; i++) pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[2 * i], sums[2 * i + 1]),
                                                                 _mm512_unpackhi_epi32(sums[2 * i], sums[2 * i + 1]));
  UNROLL for (int i = 0; i < 2; i++) fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                                                                 _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
  low = _mm512_shuffle_i32x4(fours[0], fours[1], 0x88); /* quarters 0 and 2 of each */
  high = _mm512_shuffle_i32x4(fours[0], fours[1], 0xdd);
  both = _mm512_add_epi32(low, high);
  both = _mm512_add_epi32(both, _mm512_shuffle_i32x4(both, both, 0xb1));
  return _mm512_castsi512_si256(_mm512_shuffle_i32x4(both, both, 0x08));
}

/* Compute the sums of a tile of items. */
TILE __m256i rows_tile(const struct byte_query *query, const struct row_tile *tile)
{
  __m512i high[TILE_ROWS], low[TILE_ROWS];
  size_t n = query->n_groups * SKETCH_GROUP;

  UNROLL for (int i = 0; i < TILE_ROWS; i++) high[i] = low[i] = _mm512_setzero_si512();
  for (size_t k = 0; k < n; k += ROW_BYTES) {
    __m512i q_high = _mm512_loadu_si512(query->high + k), q_low = _mm512_loadu_si512(query->low + k);
    row_tile_prefetch(tile, TILE_ROWS, k);
    UNROLL for (int i = 0; i < TILE_ROWS; i++)
    {
      __m512i bytes = _mm512_loadu_si512(tile->rows[i] + k);
      add_products(&high[i], bytes, q_high);
      add_products(&low[i], bytes, q_low);
    }
  }
  UNROLL for (int i = 0; i < TILE_ROWS; i++) low[i] = _mm512_add_epi32(_mm512_slli_epi32(high[i], 8), low[i]);
  return sum_lanes(low);
}

static void dot_i8_rows_vnni(const int16_t *query, size_t n_groups, const uint8_t *rows, const uint32_t *slots,
                             size_t n, int32_t *sums)
{
  struct row_order order = row_order_of(rows, n_groups, slots, n);
  struct row_tile tile;
  struct byte_query split;

  memset(sums, 0, n * sizeof *sums);
  for (size_t g = 0; g < n_groups; g += CHUNK_GROUPS) {
    size_t n_split = n_groups - g < CHUNK_GROUPS ? n_groups - g : CHUNK_GROUPS;
    __m256i start = _mm256_set1_epi32(-128 * split_bytes(query + g * SKETCH_GROUP, n_split, &split));
    order.rows = rows + g * SKETCH_GROUP;
    for (size_t i = 0; i < n; i += TILE_ROWS) {
      __mmask8 used = (__mmask8)(n - i < TILE_ROWS ? (1u << (n - i)) - 1 : 0xff);
      row_tile_get(&order, i, TILE_ROWS, &tile);
      __m256i sum = _mm256_add_epi32(_mm256_maskz_loadu_epi32(used, sums + i), start);
      _mm256_mask_storeu_epi32(sums + i, used, _mm256_add_epi32(sum, rows_tile(&split, &tile)));
    }
  }
}

void variant_avx512_vnni(struct kernels *table)
{
  table->dot_i8 = dot_i8_vnni;
  table->dot_i8_rows = dot_i8_rows_vnni;
  variant_mol_lists_vnni(table);
  variant_mol_bounds_vnni(table);
  variant_mol_screen_vnni(table);
}
