/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which kernels visit items that lie one after the other, and how far ahead they prefetch. Private to the
 * variant files. */
#ifndef KERNELS_X86_SIMD_ROWS_H
#define KERNELS_X86_SIMD_ROWS_H

#include "kernels/x86/simd_macros.h"

enum { ROWS_AHEAD_BYTES = 6144, ROWS_LINE_BYTES = 64 };

struct row_order {
  const uint8_t *rows;
  size_t bytes; /* of a row */
  const uint32_t *slots;
  size_t n;
  size_t ahead; /* rows from a row to the one that is prefetched with it */
};

static inline struct row_order row_order_of(const uint8_t *rows, size_t n_groups, const uint32_t *slots, size_t n)
{
  size_t bytes = n_groups * SKETCH_GROUP;

  return (struct row_order){ rows, bytes, slots, n, ROWS_AHEAD_BYTES / (bytes + 1) + 8 };
}

/* The i-th row. After the last one, it comes again. */
static inline const uint8_t *row_order_at(const struct row_order *order, size_t i)
{
  i = i < order->n ? i : order->n - 1;
  return order->rows + (order->slots ? order->slots[i] : i) * order->bytes;
}

/* Rows of a tile, and as many later rows to prefetch meanwhile. */
struct row_tile {
  const uint8_t *rows[SKETCH_BLOCK_ITEMS];
  const uint8_t *later[SKETCH_BLOCK_ITEMS];
};

/* Get n rows from `first` on. */
static inline void row_tile_get(const struct row_order *order, size_t first, size_t n, struct row_tile *out)
{
  for (size_t i = 0; i < n; i++) {
    out->rows[i] = row_order_at(order, first + i);
    out->later[i] = row_order_at(order, first + i + order->ahead);
    __builtin_prefetch(out->later[i] + order->bytes - 1); /* a row need not begin with a line */
  }
}

/* Prefetch the lines of n later rows that a tile will read at `at`. */
TILE void row_tile_prefetch(const struct row_tile *tile, size_t n, size_t at)
{
  UNROLL for (size_t i = 0; i < n; i++) __builtin_prefetch(tile->later[i] + at);
}

#endif
