/* SPDX-License-Identifier: Apache-2.0 */
/* dot_i8() with tiles. The first factor of a tile product is 64 numbers of each of 16 queries, in bytes. The
 * second is 16 groups of a block: a tile has them in the order in which they lie in memory. Include it after
 * amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 */
#ifndef KERNELS_X86_SIMD_DOT_I8_TILES_H
#define KERNELS_X86_SIMD_DOT_I8_TILES_H

#include <assert.h>
#include <immintrin.h>

#include "kernels/x86/simd_macros.h"

enum {
  TILE_QUERIES = 16, /* rows of a tile */
  TILE_GROUPS = 16,
  TILE_NUMBERS = TILE_GROUPS * SKETCH_GROUP, /* of a query */
  TILE_BYTES = TILE_NUMBERS * SKETCH_BLOCK_ITEMS,
  CHUNK_TILES = 16, /* tiles of the queries' numbers that are split at a time */
  CHUNK_GROUPS = CHUNK_TILES * TILE_GROUPS,
  WORD_LANES = 32, /* 16-bit numbers in a register */
};

static_assert(TILE_BYTES - SKETCH_GROUP * SKETCH_BLOCK_ITEMS <= SKETCH_BLOCKS_PAD, "a tile reads no further");

/* Some of the numbers of up to 16 queries as signed bytes: number = 256 * high + low. Zeros follow, up to a whole tile:
 * what a tile reads after a block does not count. The rows of absent queries are never set, and their sums not read. */
struct query_tiles {
  int8_t high[CHUNK_TILES][TILE_QUERIES][TILE_NUMBERS] __attribute__((aligned(64)));
  int8_t low[CHUNK_TILES][TILE_QUERIES][TILE_NUMBERS] __attribute__((aligned(64)));
  int32_t starts[TILE_QUERIES]; /* of the sums: -128 times the sum of the query's numbers */
  size_t n_queries, n_tiles;
};

/* A register of numbers, with zeros after the last one. */
TILE __m512i load_numbers(const int16_t *numbers, size_t at, size_t n)
{
  size_t left = at < n ? n - at : 0;

  return _mm512_maskz_loadu_epi16(left < WORD_LANES ? (1u << left) - 1 : UINT32_MAX, numbers + at);
}

/* Two registers were packed into one, in turns of 8 bytes: restore their order. */
TILE __m512i in_order(__m512i packed)
{
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed);
}

TILE __m512i high_parts(__m512i numbers)
{
  return _mm512_srai_epi16(_mm512_add_epi16(numbers, _mm512_set1_epi16(128)), 8);
}

TILE __m512i low_parts(__m512i numbers)
{
  return _mm512_and_si512(numbers, _mm512_set1_epi16(255));
}

/* Split n numbers of query q. */
static void split_query(const int16_t *numbers, size_t n, size_t q, struct query_tiles *out)
{
  const __m512i ones = _mm512_set1_epi16(1);
  __m512i sum = _mm512_setzero_si512();

  for (size_t t = 0; t < out->n_tiles; t++) {
    __m512i first = load_numbers(numbers, t * TILE_NUMBERS, n);
    __m512i second = load_numbers(numbers, t * TILE_NUMBERS + WORD_LANES, n);
    _mm512_storeu_si512(out->high[t][q], in_order(_mm512_packs_epi16(high_parts(first), high_parts(second))));
    _mm512_storeu_si512(out->low[t][q], in_order(_mm512_packus_epi16(low_parts(first), low_parts(second))));
    sum = _mm512_add_epi32(sum, _mm512_add_epi32(_mm512_madd_epi16(first, ones), _mm512_madd_epi16(second, ones)));
  }
  out->starts[q] = -128 * _mm512_reduce_add_epi32(sum);
}

/* Split the numbers of groups g..g+n_groups-1. */
static void split_queries(const int16_t *const *queries, size_t n_queries, size_t g, size_t n_groups,
                          struct query_tiles *out)
{
  out->n_queries = n_queries;
  out->n_tiles = (n_groups + TILE_GROUPS - 1) / TILE_GROUPS;
  for (size_t q = 0; q < n_queries; q++)
    split_query(queries[q] + g * SKETCH_GROUP, n_groups * SKETCH_GROUP, q, out);
}

/* Multiply the queries with n blocks, 1 or 2. Tiles 0 to 3 hold sums: the high and low parts' of each block. Tiles 4
 * and 5 hold queries, 6 and 7 blocks. */
TILE void multiply_blocks(const struct query_tiles *queries, const uint8_t *blocks, size_t block_bytes, int n)
{
  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (size_t t = 0; t < queries->n_tiles; t++, blocks += TILE_BYTES) {
    tile_load(4, queries->high[t], TILE_NUMBERS);
    tile_load_once(6, blocks, TILE_NUMBERS);
    tile_add_unsigned(0, 4, 6);
    tile_load(5, queries->low[t], TILE_NUMBERS);
    tile_add_unsigned(1, 5, 6);
    if (n == 2) {
      tile_load_once(7, blocks + block_bytes, TILE_NUMBERS);
      tile_add_unsigned(2, 4, 7);
      tile_add_unsigned(3, 5, 7);
    }
  }
}

/* The sums of two blocks: the high and low parts' of each. */
struct tile_sums {
  int32_t high[2][TILE_QUERIES][SKETCH_BLOCK_ITEMS] __attribute__((aligned(64)));
  int32_t low[2][TILE_QUERIES][SKETCH_BLOCK_ITEMS] __attribute__((aligned(64)));
};

static inline void store_sums(struct tile_sums *out)
{
  tile_store(0, out->high[0], sizeof out->high[0][0]);
  tile_store(1, out->low[0], sizeof out->low[0][0]);
  tile_store(2, out->high[1], sizeof out->high[1][0]);
  tile_store(3, out->low[1], sizeof out->low[1][0]);
}

/* Add the sums of n blocks to sums[q][at..]; `before` has a bit for each item if there are any before. */
TILE void add_sums(const struct tile_sums *from, const struct query_tiles *queries, int n, __mmask16 before,
                   int32_t *const *sums, size_t at)
{
  for (size_t q = 0; q < queries->n_queries; q++) {
    __m512i start = _mm512_set1_epi32(queries->starts[q]);
    UNROLL for (int i = 0; i < n; i++)
    {
      int32_t *to = sums[q] + at + i * SKETCH_BLOCK_ITEMS;
      __m512i high = _mm512_load_si512(from->high[i][q]), low = _mm512_load_si512(from->low[i][q]);
      __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(before, to), start);
      _mm512_storeu_si512(to, _mm512_add_epi32(sum, _mm512_add_epi32(_mm512_slli_epi32(high, 8), low)));
    }
  }
}

/* Add the products of some groups. The sums of two blocks are added while the next two are multiplied. */
static void add_products(const struct query_tiles *queries, const uint8_t *blocks, size_t block_bytes, size_t n_blocks,
                         __mmask16 before, int32_t *const *sums)
{
  struct tile_sums found[2];
  size_t b = 0;

  for (; b + 2 <= n_blocks; b += 2) {
    multiply_blocks(queries, blocks + b * block_bytes, block_bytes, 2);
    if (b > 0)
      add_sums(&found[(b / 2 + 1) % 2], queries, 2, before, sums, (b - 2) * SKETCH_BLOCK_ITEMS);
    store_sums(&found[b / 2 % 2]);
  }
  if (b > 0)
    add_sums(&found[(b / 2 + 1) % 2], queries, 2, before, sums, (b - 2) * SKETCH_BLOCK_ITEMS);
  if (b < n_blocks) {
    multiply_blocks(queries, blocks + b * block_bytes, block_bytes, 1);
    store_sums(&found[0]);
    add_sums(&found[0], queries, 1, before, sums, b * SKETCH_BLOCK_ITEMS);
  }
}

/* dot_i8() of up to TILE_QUERIES queries. A sum may overflow on the way: additions wrap, and the final sum fits.
 */
static void dot_i8_of_tile(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                           size_t n_blocks, int32_t *const *sums)
{
  const size_t block_bytes = n_groups * SKETCH_GROUP * SKETCH_BLOCK_ITEMS;
  struct query_tiles split;

  for (size_t g = 0; g == 0 || g < n_groups; g += CHUNK_GROUPS) {
    split_queries(queries, n_queries, g, n_groups - g < CHUNK_GROUPS ? n_groups - g : CHUNK_GROUPS, &split);
    add_products(&split, blocks + g * SKETCH_GROUP * SKETCH_BLOCK_ITEMS, block_bytes, n_blocks, g > 0 ? 0xffff : 0,
                 sums);
  }
}

static void dot_i8_tiles(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                         size_t n_blocks, int32_t *const *sums)
{
  tiles_begin();
  for (size_t q = 0; q < n_queries; q += TILE_QUERIES)
    dot_i8_of_tile(queries + q, n_queries - q < TILE_QUERIES ? n_queries - q : TILE_QUERIES, n_groups, blocks, n_blocks,
                   sums + q);
  tiles_end();
}

#endif
