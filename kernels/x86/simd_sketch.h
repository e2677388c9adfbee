/* SPDX-License-Identifier: Apache-2.0 */
/* dot_i8() and sketch_bounds(), written once for all instruction sets. Include it after a
 * simd_numbers_*.h. Private to the variant files. */
#ifndef KERNELS_X86_SIMD_SKETCH_H
#define KERNELS_X86_SIMD_SKETCH_H

#include "kernels/x86/simd_math.h"

/* dot_i8 -------------------- */

enum {
  BYTES_ROW = SKETCH_BLOCK_ITEMS * SKETCH_GROUP, /* bytes of one group in a block */
  BYTES_PARTS = BYTES_ROW / INTS_BYTES,          /* registers of one group in a block */
  BYTES_SUMS = 8,                                /* registers of sums in a tile */
  BYTES_GROUPS = 256,                            /* groups of the query that are split at a time */
};

/* The query's numbers of some groups, in the pairs that multiply an item's even and odd bytes. */
struct byte_pairs {
  uint32_t even[BYTES_GROUPS];
  uint32_t odd[BYTES_GROUPS];
  size_t n;
};

static void split_pairs(const int16_t *query, size_t n_groups, struct byte_pairs *out)
{
  out->n = n_groups;
  for (size_t g = 0; g < n_groups; g++, query += SKETCH_GROUP) {
    out->even[g] = (uint16_t)query[0] | (uint32_t)(uint16_t)query[2] << 16;
    out->odd[g] = (uint16_t)query[1] | (uint32_t)(uint16_t)query[3] << 16;
  }
}

/* Add the products of some groups to n_sums registers of sums. */
TILE void bytes_tile(const struct byte_pairs *pairs, const uint8_t *blocks, size_t block_bytes, int n_sums,
                     int32_t *sums)
{
  ints totals[BYTES_SUMS];

  UNROLL for (int i = 0; i < n_sums; i++) totals[i] = ints_load((uint8_t *)sums + i * INTS_BYTES);
  for (size_t g = 0; g < pairs->n; g++) {
    ints even = ints_set1(pairs->even[g]), odd = ints_set1(pairs->odd[g]);
    UNROLL for (int i = 0; i < n_sums; i++)
    {
      size_t at = (size_t)(i / BYTES_PARTS) * block_bytes + g * BYTES_ROW + (size_t)(i % BYTES_PARTS) * INTS_BYTES;
      ints bytes = ints_load(blocks + at);
      ints low = ints_multiply_pairs(ints_even_bytes(bytes), even);
      totals[i] = ints_add(totals[i], ints_add(low, ints_multiply_pairs(ints_odd_bytes(bytes), odd)));
    }
  }
  UNROLL for (int i = 0; i < n_sums; i++) ints_store((uint8_t *)sums + i * INTS_BYTES, totals[i]);
}

/* Return the start of all sums: bytes are 128 too large. */
static int32_t start_of_sums(const int16_t *query, size_t n)
{
  enum { NUMBERS = INTS_BYTES / 2, SUMS = INTS_BYTES / 4 };
  ints sums = ints_set1(0);
  int32_t each[SUMS], sum = 0;
  size_t k = 0;

  for (; k + NUMBERS <= n; k += NUMBERS)
    sums = ints_add(sums, ints_multiply_pairs(ints_load(query + k), ints_set1(0x00010001)));
  for (; k < n; k++)
    sum += query[k];
  ints_store(each, sums);
  for (size_t i = 0; i < SUMS; i++)
    sum += each[i];
  return -128 * sum;
}

/* A sum may overflow on the way: additions wrap, and the final sum fits. */
static void VARIANT(dot_i8_of_one)(const int16_t *query, size_t n_groups, const uint8_t *blocks, size_t n_blocks,
                                   int32_t *sums)
{
  enum { TILE_BLOCKS = BYTES_SUMS / BYTES_PARTS };
  const size_t block_bytes = n_groups * BYTES_ROW;
  const int32_t start = start_of_sums(query, n_groups * SKETCH_GROUP);
  struct byte_pairs pairs;

  for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++)
    sums[i] = start;
  for (size_t g = 0; g < n_groups; g += BYTES_GROUPS) {
    const uint8_t *from = blocks + g * BYTES_ROW;
    size_t b = 0;
    split_pairs(query + g * SKETCH_GROUP, n_groups - g < BYTES_GROUPS ? n_groups - g : BYTES_GROUPS, &pairs);
    for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
      bytes_tile(&pairs, from + b * block_bytes, block_bytes, BYTES_SUMS, sums + b * SKETCH_BLOCK_ITEMS);
    for (; b < n_blocks; b++)
      bytes_tile(&pairs, from + b * block_bytes, block_bytes, BYTES_PARTS, sums + b * SKETCH_BLOCK_ITEMS);
  }
}

/* Separate passes: at these levels arithmetic, not memory, is the limit. */
static void VARIANT(dot_i8)(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                            size_t n_blocks, int32_t *const *sums)
{
  for (size_t q = 0; q < n_queries; q++)
    VARIANT(dot_i8_of_one)(queries[q], n_groups, blocks, n_blocks, sums[q]);
}

/* sketch_bounds -------------------- */

TILE floats sketch_score(const int32_t *sums, const struct sketch_items *items, const struct sketch_weights *w,
                         size_t i)
{
  return floats_mul(floats_mul(ints_to_floats(ints_load(sums + i)), floats_load(items->scales + i)),
                    floats_set1(w->unit));
}

TILE floats sketch_slack(const struct sketch_items *items, const struct sketch_weights *w, size_t i)
{
  floats slack = floats_fma(floats_load(items->scales + i), floats_set1(w->scale), floats_set1(w->floor));

  slack = floats_fma(floats_load(items->errors + i), floats_set1(w->error), slack);
  return items->tails ? floats_fma(floats_load(items->tails + i), floats_set1(w->tail), slack) : slack;
}

static void VARIANT(sketch_bounds)(const int32_t *sums, const struct sketch_items *items,
                                   const struct sketch_weights *weights, size_t n_blocks, float *bounds)
{
  for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i += FLOATS_N)
    floats_store(bounds + i, floats_add(sketch_score(sums, items, weights, i), sketch_slack(items, weights, i)));
}

static void fill_sketch(struct kernels *table)
{
  table->dot_i8 = VARIANT(dot_i8);
  table->sketch_bounds = VARIANT(sketch_bounds);
}

#endif
