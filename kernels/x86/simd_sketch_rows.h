/* SPDX-License-Identifier: Apache-2.0 */
/* dot_i8_rows() and block_rows(), written once for all instruction sets. Include it after a simd_numbers_*.h. Private
 * to the variant files. */
#ifndef KERNELS_X86_SIMD_SKETCH_ROWS_H
#define KERNELS_X86_SIMD_SKETCH_ROWS_H

#include <string.h>

#include "kernels/x86/simd_math.h"
#include "kernels/x86/simd_rows.h"

/* dot_i8_rows -------------------- */

enum {
  ROWS_TILE = 4,     /* items in a tile */
  ROWS_GROUPS = 256, /* groups of the query that are split at a time: whole registers */
  ROWS_NUMBERS = ROWS_GROUPS * SKETCH_GROUP,
};

/* Some of the query's numbers: those that multiply an item's even and odd bytes. Zeros follow, up to a whole register:
 * what is read after an item does not count. */
struct row_pairs {
  int16_t even[ROWS_NUMBERS / 2];
  int16_t odd[ROWS_NUMBERS / 2];
  size_t n_regs;
  int32_t start; /* of the sums: bytes are 128 too large */
};

static void split_row_pairs(const int16_t *query, size_t n, struct row_pairs *out)
{
  int32_t sum = 0;

  out->n_regs = (n + INTS_BYTES - 1) / INTS_BYTES;
  for (size_t k = 0; k < out->n_regs * INTS_BYTES; k += 2) {
    out->even[k / 2] = k < n ? query[k] : 0; /* n is even */
    out->odd[k / 2] = k < n ? query[k + 1] : 0;
    sum += out->even[k / 2] + out->odd[k / 2];
  }
  out->start = -128 * sum;
}

/* Compute the sums of four items. */
TILE __m128i rows_tile(const struct row_pairs *pairs, const struct row_tile *tile)
{
  ints totals[ROWS_TILE];

  UNROLL for (int i = 0; i < ROWS_TILE; i++) totals[i] = ints_set1(0);
  for (size_t r = 0; r < pairs->n_regs; r++) {
    ints even = ints_load(pairs->even + r * INTS_BYTES / 2), odd = ints_load(pairs->odd + r * INTS_BYTES / 2);
    row_tile_prefetch(tile, ROWS_TILE, r * INTS_BYTES);
    UNROLL for (int i = 0; i < ROWS_TILE; i++)
    {
      ints bytes = ints_load(tile->rows[i] + r * INTS_BYTES);
      ints low = ints_multiply_pairs(ints_even_bytes(bytes), even);
      totals[i] = ints_add(totals[i], ints_add(low, ints_multiply_pairs(ints_odd_bytes(bytes), odd)));
    }
  }
  ints first = ints_add(ints_low_32(totals[0], totals[1]), ints_high_32(totals[0], totals[1]));
  ints last = ints_add(ints_low_32(totals[2], totals[3]), ints_high_32(totals[2], totals[3]));
  return ints_add_pieces(ints_add(ints_low_64(first, last), ints_high_64(first, last)));
}

/* A sum may overflow on the way: additions wrap, and the final sum fits. */
static void VARIANT(dot_i8_rows)(const int16_t *query, size_t n_groups, const uint8_t *rows, const uint32_t *slots,
                                 size_t n, int32_t *sums)
{
  struct row_order order = row_order_of(rows, n_groups, slots, n);
  struct row_tile tile;
  struct row_pairs pairs;
  uint32_t found[ROWS_TILE];

  memset(sums, 0, n * sizeof *sums);
  for (size_t g = 0; g < n_groups; g += ROWS_GROUPS) {
    size_t n_split = n_groups - g < ROWS_GROUPS ? n_groups - g : ROWS_GROUPS;
    split_row_pairs(query + g * SKETCH_GROUP, n_split * SKETCH_GROUP, &pairs);
    order.rows = rows + g * SKETCH_GROUP;
    for (size_t i = 0; i < n; i += ROWS_TILE) {
      row_tile_get(&order, i, ROWS_TILE, &tile);
      _mm_storeu_si128((__m128i *)found, rows_tile(&pairs, &tile));
      for (size_t j = 0; j < ROWS_TILE && i + j < n; j++)
        sums[i + j] = (int32_t)((uint32_t)sums[i + j] + found[j] + (uint32_t)pairs.start);
    }
  }
}

/* block_rows -------------------- */

enum {
  PIECE_BYTES = 16, /* of an item */
  PIECE_GROUPS = PIECE_BYTES / SKETCH_GROUP,
  PIECES = INTS_BYTES / PIECE_BYTES, /* in a register */
  PART_ITEMS = PIECES * 4,           /* items whose groups fill a register */
  BLOCK_PARTS = SKETCH_BLOCK_ITEMS / PART_ITEMS,
};

/* Write n_groups of a piece's groups of some items: transpose 4 x 4 groups in each 128 bits. */
TILE void transpose_piece(const uint8_t *const *items, size_t at, size_t n_groups, uint8_t *block)
{
  ints rows[4], low[2], high[2], groups[PIECE_GROUPS];

  UNROLL for (size_t i = 0; i < 4; i++) rows[i] = ints_load_pieces(items + i, 4, at);
  UNROLL for (int i = 0; i < 2; i++)
  {
    low[i] = ints_low_32(rows[2 * i], rows[2 * i + 1]);
    high[i] = ints_high_32(rows[2 * i], rows[2 * i + 1]);
  }
  groups[0] = ints_low_64(low[0], low[1]);
  groups[1] = ints_high_64(low[0], low[1]);
  groups[2] = ints_low_64(high[0], high[1]);
  groups[3] = ints_high_64(high[0], high[1]);
  UNROLL for (size_t g = 0; g < n_groups; g++)
      ints_store(block + at * SKETCH_BLOCK_ITEMS + g * SKETCH_BLOCK_ITEMS * SKETCH_GROUP, groups[g]);
}

/* Write n_bytes of each item, at most a line, to a block. */
TILE void write_columns(const uint8_t *const *items, size_t at, size_t n_bytes, uint8_t *block)
{
  size_t end = at + n_bytes;

  for (; at + PIECE_BYTES <= end; at += PIECE_BYTES)
    transpose_piece(items, at, PIECE_GROUPS, block);
  if (end - at == 3 * SKETCH_GROUP)
    transpose_piece(items, at, 3, block);
  else if (end - at == 2 * SKETCH_GROUP)
    transpose_piece(items, at, 2, block);
  else if (end - at == SKETCH_GROUP)
    transpose_piece(items, at, 1, block);
}

static void write_block(const struct row_tile *tile, size_t bytes, uint8_t *block)
{
  for (size_t at = 0; at < bytes; at += ROWS_LINE_BYTES) {
    row_tile_prefetch(tile, SKETCH_BLOCK_ITEMS, at);
    for (size_t p = 0; p < BLOCK_PARTS; p++)
      write_columns(tile->rows + p * PART_ITEMS, at, bytes - at < ROWS_LINE_BYTES ? bytes - at : ROWS_LINE_BYTES,
                    block + p * INTS_BYTES);
  }
}

static void VARIANT(block_rows)(const uint8_t *rows, size_t n_groups, const uint32_t *slots, size_t n, uint8_t *blocks)
{
  struct row_order order = row_order_of(rows, n_groups, slots, n);
  struct row_tile tile;

  for (size_t i = 0; i < n; i += SKETCH_BLOCK_ITEMS) {
    row_tile_get(&order, i, SKETCH_BLOCK_ITEMS, &tile);
    write_block(&tile, order.bytes, blocks + i * order.bytes);
  }
}

static void fill_sketch_rows(struct kernels *table)
{
  table->dot_i8_rows = VARIANT(dot_i8_rows);
  table->block_rows = VARIANT(block_rows);
}

#endif
