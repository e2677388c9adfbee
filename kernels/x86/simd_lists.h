/* SPDX-License-Identifier: Apache-2.0 */
/* Vector code of mol_lists(), mol_any() and average_lists(), once for all instruction sets: to be included after the
 * operations on integers that a mol_lists_*.c defines. Lanes are items. Private to those files.
 *
 * A tile keeps the sums of some rows with some vectors of items in registers. Sums start below 0 by the threshold, so
 * that one AND of all of them tells whether the tile has a hit, which is rare.
 */
#ifndef KERNELS_X86_SIMD_LISTS_H
#define KERNELS_X86_SIMD_LISTS_H

#include <string.h>

#define TILE static inline __attribute__((always_inline))

enum {
  ITEMS = SKETCH_BLOCK_ITEMS,
  BLOCK_REGS = ITEMS / LANES,
  GROUP_BYTES = ITEMS * 4,
  INTS_BYTES = LANES * 4,
};

/* Append what reached 0, and return how many, of one row's sums with LANES items. */
static __attribute__((noinline)) size_t append(struct scan_list *list, ints sums, uint32_t slot)
{
  int32_t values[LANES];
  unsigned hits = ~ints_negative(sums) & ((1u << LANES) - 1);
  struct scan_entry *entries = list->entries + list->n;

  ints_store(values, sums);
  size_t n = (size_t)__builtin_popcount(hits);
  list->n += (uint32_t)n;
  for (; hits; hits &= hits - 1) {
    unsigned i = (unsigned)__builtin_ctz(hits);
    *entries++ = (struct scan_entry){ (int32_t)((uint32_t)values[i] + (uint32_t)list->threshold), slot + i };
  }
  return n;
}

/* One block's work: where its items are and what becomes of the sums. */
struct scan {
  const struct sketch_rows *rows;
  size_t n_components;
  const uint8_t *block;
  uint32_t slot;
  struct scan_list *lists; /* [n_rows][n_components] */
};

/* sums += rows r.. times vectors of items at `items`, whose parts are component_bytes apart. */
TILE void multiply_bytes(const struct sketch_rows *rows, size_t r, const uint8_t *items, size_t component_bytes,
                         int n_rows, int n_regs, ints sums[TILE_ROWS][TILE_REGS])
{
  const int8_t *bytes = rows->bytes + r * 4;
  const size_t step = rows->n_rows * 4;

  for (size_t g = rows->n_groups; g > 0; g--, bytes += step, items += GROUP_BYTES) {
    struct item_bytes x[TILE_REGS];
    UNROLL for (int v = 0; v < n_regs; v++) x[v] =
        item_bytes_load(items + (size_t)(v / BLOCK_REGS) * component_bytes + v % BLOCK_REGS * INTS_BYTES);
    UNROLL for (int i = 0; i < n_rows; i++)
    {
      struct row_bytes row = row_bytes_load(bytes + 4 * i);
      UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = add_dot_bytes(sums[i][v], x[v], row);
    }
  }
}

TILE ints and_all(ints sums[TILE_ROWS][TILE_REGS], int n_rows, int n_regs)
{
  ints all = sums[0][0];

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) all = ints_and(all, sums[i][v]);
  }
  return all;
}

/* Rows r.. with components m.. of a block, of which the tile holds n_regs vectors. */
TILE size_t lists_tile(const struct scan *s, size_t r, size_t m, int n_rows, int n_regs)
{
  const size_t component_bytes = s->rows->n_groups * GROUP_BYTES;
  struct scan_list *lists = s->lists + r * s->n_components + m;
  ints sums[TILE_ROWS][TILE_REGS];

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] =
        ints_set1(lists[(size_t)i * s->n_components + (size_t)(v / BLOCK_REGS)].start);
  }
  multiply_bytes(s->rows, r, s->block + m * component_bytes, component_bytes, n_rows, n_regs, sums);
  if (ints_negative(and_all(sums, n_rows, n_regs)) == (1u << LANES) - 1)
    return 0;
  size_t n = 0;
  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++)
    {
      if (ints_negative(sums[i][v]) != (1u << LANES) - 1)
        n += append(&lists[(size_t)i * s->n_components + (size_t)(v / BLOCK_REGS)], sums[i][v],
                    s->slot + (uint32_t)(v % BLOCK_REGS * LANES));
    }
  }
  return n;
}

TILE size_t lists_rows(const struct scan *s, size_t r, int n_rows)
{
  enum { TILE_COMPONENTS = TILE_REGS / BLOCK_REGS };
  size_t m = 0, n = 0;

  for (; m + TILE_COMPONENTS <= s->n_components; m += TILE_COMPONENTS)
    n += lists_tile(s, r, m, n_rows, TILE_REGS);
  for (; m < s->n_components; m++)
    n += lists_tile(s, r, m, n_rows, BLOCK_REGS);
  return n;
}

static size_t lists(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t block_bytes,
                    size_t n_blocks, uint32_t first_slot, struct scan_list *out)
{
  size_t n = 0;

  for (size_t b = 0; b < n_blocks; b++) {
    struct scan s = { rows, n_components, blocks + b * block_bytes, first_slot + (uint32_t)(b * ITEMS), out };
    size_t r = 0;
    for (; r + TILE_ROWS <= rows->n_rows; r += TILE_ROWS)
      n += lists_rows(&s, r, TILE_ROWS);
    for (; r < rows->n_rows; r++)
      n += lists_rows(&s, r, 1);
  }
  return n;
}

/* The AND of the sums of rows r.. with all components of a block. */
TILE void any_rows(const struct sketch_rows *rows, size_t n_components, const uint8_t *block, const int32_t *starts,
                   size_t r, int n_rows, ints all[BLOCK_REGS])
{
  const size_t component_bytes = rows->n_groups * GROUP_BYTES;

  for (size_t m = 0; m < n_components; m++) {
    ints sums[TILE_ROWS][TILE_REGS];
    UNROLL for (int i = 0; i < n_rows; i++)
    {
      UNROLL for (int v = 0; v < BLOCK_REGS; v++) sums[i][v] = ints_set1(starts[r + (size_t)i]);
    }
    multiply_bytes(rows, r, block + m * component_bytes, component_bytes, n_rows, BLOCK_REGS, sums);
    UNROLL for (int v = 0; v < BLOCK_REGS; v++)
    {
      UNROLL for (int i = 0; i < n_rows; i++) all[v] = ints_and(all[v], sums[i][v]);
    }
  }
}

static void any(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t n_blocks,
                const int32_t *starts, uint16_t *masks)
{
  for (size_t b = 0; b < n_blocks; b++) {
    const uint8_t *block = blocks + b * n_components * rows->n_groups * GROUP_BYTES;
    unsigned negative = 0;
    ints all[BLOCK_REGS];
    size_t r = 0;
    UNROLL for (int v = 0; v < BLOCK_REGS; v++) all[v] = ints_set1(-1);
    for (; r + TILE_ROWS <= rows->n_rows; r += TILE_ROWS)
      any_rows(rows, n_components, block, starts, r, TILE_ROWS, all);
    for (; r < rows->n_rows; r++)
      any_rows(rows, n_components, block, starts, r, 1, all);
    UNROLL for (int v = 0; v < BLOCK_REGS; v++) negative |= ints_negative(all[v]) << (v * LANES);
    masks[b] = (uint16_t)~negative;
  }
}

/* Rows r.. of queries with the averaged vectors of some blocks, of which the tile holds n_regs vectors. The second tile
 * of rows, which finds these blocks in cache, has the next ones come. */
TILE size_t average_tile(const int16_t *rows, size_t n_all_rows, size_t n_groups, const int16_t *blocks, size_t r,
                         int n_rows, int n_regs, uint32_t slot, struct scan_list *out)
{
  const size_t block_bytes = n_groups * GROUP_BYTES;
  ints sums[TILE_ROWS][TILE_REGS];
  const uint8_t *items = (const uint8_t *)blocks;

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = ints_set1(out[r + (size_t)i].start);
  }
  for (size_t g = 0; g < n_groups; g++, items += GROUP_BYTES) {
    const int16_t *row = rows + (g * n_all_rows + r) * 2;
    ints x[TILE_REGS];
    UNROLL for (int v = 0; r == TILE_ROWS && v < n_regs; v += BLOCK_REGS)
        __builtin_prefetch(items + (size_t)((n_regs + v) / BLOCK_REGS) * block_bytes);
    UNROLL for (int v = 0; v < n_regs; v++) x[v] =
        ints_load(items + (size_t)(v / BLOCK_REGS) * block_bytes + v % BLOCK_REGS * INTS_BYTES);
    UNROLL for (int i = 0; i < n_rows; i++)
    {
      int32_t pair;
      memcpy(&pair, row + 2 * i, sizeof pair);
      UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = add_dot_words(sums[i][v], x[v], ints_set1(pair));
    }
  }
  if (ints_negative(and_all(sums, n_rows, n_regs)) == (1u << LANES) - 1)
    return 0;
  size_t n = 0;
  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++)
    {
      if (ints_negative(sums[i][v]) != (1u << LANES) - 1)
        n += append(&out[r + (size_t)i], sums[i][v], slot + (uint32_t)(v * LANES));
    }
  }
  return n;
}

/* All rows with the blocks of one tile. */
TILE size_t average_rows(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, int n_regs,
                         uint32_t slot, struct scan_list *out)
{
  size_t r = 0, n = 0;

  for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS)
    n += average_tile(rows, n_rows, n_groups, blocks, r, TILE_ROWS, n_regs, slot, out);
  for (; r < n_rows; r++)
    n += average_tile(rows, n_rows, n_groups, blocks, r, 1, n_regs, slot, out);
  return n;
}

static size_t average(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, size_t n_blocks,
                      uint32_t first_slot, struct scan_list *out)
{
  enum { TILE_BLOCKS = TILE_REGS / BLOCK_REGS };
  const size_t block_numbers = n_groups * ITEMS * 2;
  size_t b = 0, n = 0;

  for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
    n += average_rows(rows, n_rows, n_groups, blocks + b * block_numbers, TILE_REGS, first_slot + (uint32_t)(b * ITEMS),
                      out);
  for (; b < n_blocks; b++)
    n += average_rows(rows, n_rows, n_groups, blocks + b * block_numbers, BLOCK_REGS,
                      first_slot + (uint32_t)(b * ITEMS), out);
  return n;
}

static void fill_lists(struct kernels *table)
{
  table->mol_lists = lists;
  table->mol_any = any;
  table->average_lists = average;
}

#endif
