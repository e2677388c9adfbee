/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any(), mol_any_tile() and average_lists(), written once for all instruction sets. Lanes are items.
 * Include it after a simd_numbers_*.h and the dot products of bytes: simd_wide_bytes.h, or those of mol_lists_vnni.c.
 * Private to the mol_lists_*.c files.
 *
 * A tile holds the sums of some rows with some registers of items. A sum is a hit if it ends at 0 or above. Hits are
 * rare: the AND of all sums of a tile tells if it has any.
 */
#ifndef KERNELS_X86_SIMD_LISTS_H
#define KERNELS_X86_SIMD_LISTS_H

#include <string.h>

#include "kernels/x86/simd_macros.h"

enum {
  ITEMS = SKETCH_BLOCK_ITEMS,
  BLOCK_REGS = ITEMS / INTS_N,
  GROUP_BYTES = ITEMS * 4,
};

/* Append the hits among one row's sums with INTS_N items to its list. Returns how many. */
static __attribute__((noinline)) size_t append(struct scan_list *list, ints sums, uint32_t slot)
{
  int32_t values[INTS_N];
  unsigned hits = ~ints_negative(sums) & ((1u << INTS_N) - 1);
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

/* One block of items, and the lists that its hits go to. */
struct scan {
  const struct sketch_rows *rows;
  size_t n_components;
  const uint8_t *block;
  uint32_t slot;
  struct scan_list *lists; /* [n_rows][n_components] */
};

/* Return the same four bytes in every lane. */
static inline ints broadcast(const void *bytes)
{
  uint32_t x;

  memcpy(&x, bytes, sizeof x);
  return ints_set1(x);
}

/* Where registers of items are: BLOCK_REGS of them follow each other, and the next ones are part_bytes on. Consecutive
 * groups are group_bytes apart. */
struct item_steps {
  size_t part_bytes, group_bytes;
};

/* Add the products of n_rows rows, from row r, and n_regs registers of items to `sums`. */
TILE void multiply_bytes(const struct sketch_rows *rows, size_t r, const uint8_t *items, struct item_steps steps,
                         int n_rows, int n_regs, ints sums[LISTS_ROWS][LISTS_REGS])
{
  const int8_t *bytes = rows->bytes + r * 4;
  const size_t step = rows->n_rows * 4;

  for (size_t g = rows->n_groups; g > 0; g--, bytes += step, items += steps.group_bytes) {
    struct item_bytes x[LISTS_REGS];
    UNROLL for (int v = 0; v < n_regs; v++) x[v] =
        item_bytes_split(ints_load(items + (size_t)(v / BLOCK_REGS) * steps.part_bytes + v % BLOCK_REGS * INTS_BYTES));
    UNROLL for (int i = 0; i < n_rows; i++)
    {
      struct row_bytes row = row_bytes_split(broadcast(bytes + 4 * i));
      UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = add_dot_bytes(sums[i][v], x[v], row);
    }
  }
}

TILE ints and_all(ints sums[LISTS_ROWS][LISTS_REGS], int n_rows, int n_regs)
{
  ints all = sums[0][0];

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) all = ints_and(all, sums[i][v]);
  }
  return all;
}

/* The lists of a tile's sums. Row i's list for its p-th part is first[i * row_step + p * part_step], and the first item
 * of that part is in slot + p * part_slots. A part is BLOCK_REGS registers: a component, or a block. */
struct tile_lists {
  struct scan_list *first;
  size_t row_step, part_step;
  uint32_t slot, part_slots;
};

/* Append the hits among four rows' sums with INTS_N items, from `slot`. The bits of `hits` are ints_hits_of_four()'s.
 * lists: row 0's list; those of the others are row_step apart. Returns how many. */
static __attribute__((noinline)) size_t append_four(struct scan_list *lists, size_t row_step, const ints sums[4],
                                                    uint64_t hits, uint32_t slot)
{
  int32_t values[4][INTS_N];
  size_t n = (size_t)__builtin_popcountll(hits);

  UNROLL for (int r = 0; r < 4; r++) ints_store(values[r], sums[r]);
  for (; hits; hits &= hits - 1) {
    unsigned bit = (unsigned)__builtin_ctzll(hits), row = bit / 4 % 4, i = bit / 16 * 4 + bit % 4;
    struct scan_list *list = &lists[row * row_step];
    list->entries[list->n++] =
        (struct scan_entry){ (int32_t)((uint32_t)values[row][i] + (uint32_t)list->threshold), slot + i };
  }
  return n;
}

/* append_tile() of a tile with a multiple of four rows and at least one hit. */
TILE size_t append_fours(const struct tile_lists *lists, ints sums[LISTS_ROWS][LISTS_REGS], int n_rows, int n_regs)
{
  size_t n = 0;

  UNROLL for (int v = 0; v < n_regs; v++)
  {
    uint32_t part = (uint32_t)(v / BLOCK_REGS), lane = (uint32_t)(v % BLOCK_REGS * INTS_N);
    UNROLL for (int i = 0; i + 4 <= n_rows; i += 4)
    {
      ints four[4] = { sums[i][v], sums[i + 1][v], sums[i + 2][v], sums[i + 3][v] };
      uint64_t hits = ints_hits_of_four(four);
      if (hits)
        n += append_four(&lists->first[(size_t)i * lists->row_step + part * lists->part_step], lists->row_step, four,
                         hits, lists->slot + part * lists->part_slots + lane);
    }
  }
  return n;
}

/* Append the hits of a tile to its lists. Returns how many. */
TILE size_t append_tile(const struct tile_lists *lists, ints sums[LISTS_ROWS][LISTS_REGS], int n_rows, int n_regs)
{
  size_t n = 0;

  if (ints_negative(and_all(sums, n_rows, n_regs)) == (1u << INTS_N) - 1)
    return 0;
  if (n_rows % 4 == 0)
    return append_fours(lists, sums, n_rows, n_regs);
  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++)
    {
      uint32_t part = (uint32_t)(v / BLOCK_REGS), lane = (uint32_t)(v % BLOCK_REGS * INTS_N);
      if (ints_negative(sums[i][v]) != (1u << INTS_N) - 1)
        n += append(&lists->first[(size_t)i * lists->row_step + part * lists->part_step], sums[i][v],
                    lists->slot + part * lists->part_slots + lane);
    }
  }
  return n;
}

/* Multiply n_rows rows, from row r, by the components of a block, from component m: n_regs registers of items. Returns
 * the number of hits. */
TILE size_t lists_tile(const struct scan *s, size_t r, size_t m, int n_rows, int n_regs)
{
  const size_t component_bytes = s->rows->n_groups * GROUP_BYTES;
  struct tile_lists lists = { s->lists + r * s->n_components + m, s->n_components, 1, s->slot, 0 };
  ints sums[LISTS_ROWS][LISTS_REGS];

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] =
        ints_set1((uint32_t)lists.first[(size_t)i * s->n_components + (size_t)(v / BLOCK_REGS)].start);
  }
  multiply_bytes(s->rows, r, s->block + m * component_bytes, (struct item_steps){ component_bytes, GROUP_BYTES },
                 n_rows, n_regs, sums);
  return append_tile(&lists, sums, n_rows, n_regs);
}

TILE size_t lists_rows(const struct scan *s, size_t r, int n_rows)
{
  enum { TILE_COMPONENTS = LISTS_REGS / BLOCK_REGS };
  size_t m = 0, n = 0;

  for (; m + TILE_COMPONENTS <= s->n_components; m += TILE_COMPONENTS)
    n += lists_tile(s, r, m, n_rows, LISTS_REGS);
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
    for (; r + LISTS_ROWS <= rows->n_rows; r += LISTS_ROWS)
      n += lists_rows(&s, r, LISTS_ROWS);
    for (; r < rows->n_rows; r++)
      n += lists_rows(&s, r, 1);
  }
  return n;
}

/* The rows that items are compared with, and how items lie in memory. A step of a comparison has either several
 * registers of items of one component, or one block of items with several components. */
struct comparison {
  const struct sketch_rows *rows;
  size_t n_components;
  struct item_steps steps;
  const int32_t *starts; /* [rows->n_rows] */
};

/* Multiply n_rows rows, from row r, by n_regs registers of items, and AND the sums into `all`. */
TILE void any_step(const struct comparison *c, const uint8_t *items, size_t r, int n_rows, int n_regs,
                   ints all[LISTS_REGS])
{
  ints sums[LISTS_ROWS][LISTS_REGS];

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = ints_set1((uint32_t)c->starts[r + (size_t)i]);
  }
  multiply_bytes(c->rows, r, items, c->steps, n_rows, n_regs, sums);
  UNROLL for (int v = 0; v < n_regs; v++)
  {
    UNROLL for (int i = 0; i < n_rows; i++) all[v] = ints_and(all[v], sums[i][v]);
  }
}

/* Multiply all rows. */
TILE void any_rows(const struct comparison *c, const uint8_t *items, int n_regs, ints all[LISTS_REGS])
{
  size_t r = 0;

  for (; r + LISTS_ROWS <= c->rows->n_rows; r += LISTS_ROWS)
    any_step(c, items, r, LISTS_ROWS, n_regs, all);
  for (; r < c->rows->n_rows; r++)
    any_step(c, items, r, 1, n_regs, all);
}

/* Which items of a block have a hit? As many components are multiplied together as have room: where a block is one
 * register, one component has too few sums to hide how long an instruction takes. */
static unsigned any_block(const struct comparison *c, const uint8_t *block)
{
  enum { STEP_COMPONENTS = LISTS_REGS / BLOCK_REGS };
  const size_t component_bytes = c->steps.part_bytes;
  ints all[LISTS_REGS];
  size_t m = 0;
  unsigned hits = 0;

  UNROLL for (int v = 0; v < LISTS_REGS; v++) all[v] = ints_set1(UINT32_MAX);
  for (; m + STEP_COMPONENTS <= c->n_components; m += STEP_COMPONENTS)
    any_rows(c, block + m * component_bytes, LISTS_REGS, all);
  for (; m < c->n_components; m++)
    any_rows(c, block + m * component_bytes, BLOCK_REGS, all);
  UNROLL for (int v = 0; v < LISTS_REGS; v++) hits |= (~ints_negative(all[v]) & ((1u << INTS_N) - 1))
                                                      << v % BLOCK_REGS * INTS_N;
  return hits;
}

static void any(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t n_blocks,
                const int32_t *starts, uint16_t *masks)
{
  const size_t component_bytes = rows->n_groups * GROUP_BYTES;
  const struct comparison c = { rows, n_components, { component_bytes, GROUP_BYTES }, starts };

  for (size_t b = 0; b < n_blocks; b++)
    masks[b] = (uint16_t)any_block(&c, blocks + b * n_components * component_bytes);
}

static uint32_t any_tile(const struct sketch_rows *rows, size_t n_components, const uint8_t *tile,
                         const int32_t *starts)
{
  const struct comparison c = { rows, n_components, { BLOCK_REGS * INTS_BYTES, MOL_LANES * 4 }, starts };
  uint32_t lanes = 0;

  for (int v = 0; v < MOL_LANES / INTS_N; v += LISTS_REGS) {
    ints all[LISTS_REGS];
    UNROLL for (int i = 0; i < LISTS_REGS; i++) all[i] = ints_set1(UINT32_MAX);
    for (size_t m = 0; m < n_components; m++)
      any_rows(&c, tile + m * rows->n_groups * MOL_LANES * 4 + (size_t)v * INTS_BYTES, LISTS_REGS, all);
    UNROLL for (int i = 0; i < LISTS_REGS; i++) lanes |= (uint32_t)(~ints_negative(all[i]) & ((1u << INTS_N) - 1))
                                                         << (v + i) * INTS_N;
  }
  return lanes;
}

/* Multiply n_rows query rows, from row r, by the averaged vectors of n_regs registers of items. Returns the number of
 * hits. The second tile of rows prefetches the next blocks, because its own are already in cache. */
TILE size_t average_tile(const int16_t *rows, size_t n_all_rows, size_t n_groups, const int16_t *blocks, size_t r,
                         int n_rows, int n_regs, uint32_t slot, struct scan_list *out)
{
  const size_t block_bytes = n_groups * GROUP_BYTES;
  struct tile_lists lists = { out + r, 1, 0, slot, ITEMS };
  ints sums[LISTS_ROWS][LISTS_REGS];
  const uint8_t *items = (const uint8_t *)blocks;

  UNROLL for (int i = 0; i < n_rows; i++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = ints_set1((uint32_t)out[r + (size_t)i].start);
  }
  for (size_t g = 0; g < n_groups; g++, items += GROUP_BYTES) {
    const int16_t *row = rows + (g * n_all_rows + r) * 2;
    ints x[LISTS_REGS];
    UNROLL for (int v = 0; r == LISTS_ROWS && v < n_regs; v += BLOCK_REGS)
        __builtin_prefetch(items + (size_t)((n_regs + v) / BLOCK_REGS) * block_bytes);
    UNROLL for (int v = 0; v < n_regs; v++) x[v] =
        ints_load(items + (size_t)(v / BLOCK_REGS) * block_bytes + v % BLOCK_REGS * INTS_BYTES);
    UNROLL for (int i = 0; i < n_rows; i++)
    {
      ints pair = broadcast(row + 2 * i);
      UNROLL for (int v = 0; v < n_regs; v++) sums[i][v] = add_dot_words(sums[i][v], x[v], pair);
    }
  }
  return append_tile(&lists, sums, n_rows, n_regs);
}

/* Multiply all query rows by the averaged vectors of one tile's blocks. Returns the number of hits. */
TILE size_t average_rows(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, int n_regs,
                         uint32_t slot, struct scan_list *out)
{
  size_t r = 0, n = 0;

  for (; r + LISTS_ROWS <= n_rows; r += LISTS_ROWS)
    n += average_tile(rows, n_rows, n_groups, blocks, r, LISTS_ROWS, n_regs, slot, out);
  for (; r < n_rows; r++)
    n += average_tile(rows, n_rows, n_groups, blocks, r, 1, n_regs, slot, out);
  return n;
}

static size_t average(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, size_t n_blocks,
                      uint32_t first_slot, struct scan_list *out)
{
  enum { TILE_BLOCKS = LISTS_REGS / BLOCK_REGS };
  const size_t block_numbers = n_groups * ITEMS * 2;
  size_t b = 0, n = 0;

  for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
    n += average_rows(rows, n_rows, n_groups, blocks + b * block_numbers, LISTS_REGS,
                      first_slot + (uint32_t)(b * ITEMS), out);
  for (; b < n_blocks; b++)
    n += average_rows(rows, n_rows, n_groups, blocks + b * block_numbers, BLOCK_REGS,
                      first_slot + (uint32_t)(b * ITEMS), out);
  return n;
}

static void fill_lists(struct kernels *table)
{
  table->mol_lists = lists;
  table->mol_any = any;
  table->mol_any_tile = any_tile;
  table->average_lists = average;
}

#endif
