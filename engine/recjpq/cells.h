/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: the inverted structure of RecJPQ columns. The M splits are taken two by two (the last alone when M is odd); a
 * cell holds the items that have the same two sub-items of one pair of splits.
 *
 * The posting list of one sub-item (L_m of the RecJPQPrune paper) is a row or a column of cells: cells_list(). Pairs
 * bound scores far more sharply than single splits do, since an item that was not met in any pair is outside the best
 * cells of each: see recjpq_exact.c.
 *
 * A cell keeps the slots of its items and their codes in the other splits, split by split, in a block that doubles when
 * it is full and halves when a quarter is left. Each slot knows its place in its cell of each pair. So a change of an
 * item costs a few writes a pair, and nothing is ever built anew.
 *
 * Thread: written by the writer of the arena; read by many while nobody writes.
 */
#ifndef ENGINE_RECJPQ_CELLS_H
#define ENGINE_RECJPQ_CELLS_H

#include "engine/recjpq/cell_pool.h"
#include "kernels/kernels.h"

struct cell {
  uint32_t start;             /* unit of its block in the pool, if n > 0 */
  uint32_t n : 27, class : 5; /* items; size of the block */
};

struct cell_pair {
  size_t first;          /* its first split */
  size_t n_splits;       /* 2, or 1 */
  size_t n_others;       /* M - n_splits */
  struct cell *cells;    /* [B][B], or [B]: by the code of the first split, then of the second */
  struct cell_pool pool; /* blocks of the next two, CELL_UNIT entries a unit */
  uint8_t *codes;        /* of a block: [n_others][entries], the other splits rising */
  uint32_t *slots;       /* of a block: [entries] */
};

struct cells {
  size_t n_splits;   /* M */
  size_t n_subitems; /* B */
  size_t capacity;   /* slots */
  size_t n_pairs;
  struct cell_pair *pairs;
  uint32_t *places;  /* [capacity][n_pairs]: where in its cell a slot is */
  uint32_t *lengths; /* [M][B]: items that have a sub-item */
};

/* Reserve for so many slots. Returns ERR_CONFIG or ERR_MEMORY; `*out` may then be given to cells_fini(). */
err_t cells_init(size_t n_splits, size_t n_subitems, size_t capacity, struct cells *out);
void cells_fini(struct cells *c);

/* For people: bytes that an item takes while cells hold a few dozen items, slack included. */
size_t cells_bytes_per_slot(size_t n_splits);

/* Bytes in use now, slack and free blocks included: tests and benchmarks. */
size_t cells_bytes(const struct cells *c);

/* codes [M], each < B. A slot is inserted once and removed with the codes that it has. Returns ERR_MEMORY when the pool
 * is full; the cells are then of no further use. */
err_t cells_insert(struct cells *c, uint32_t slot, const uint8_t *codes);
void cells_remove(struct cells *c, uint32_t slot, const uint8_t *codes);

/* Give back the memory of slots from..to-1, which are in no cell; those from `to` on were in none since the last call.
 * A pool gives its memory back when no cell has an item. */
void cells_trim(struct cells *c, size_t from, size_t to);

/* The item of slot `from` is in slot `to` now. */
void cells_rename(struct cells *c, uint32_t from, uint32_t to, const uint8_t *codes);

static inline size_t cell_entries(struct cell cell)
{
  return (size_t)CELL_UNIT << cell.class;
}

static inline const uint8_t *cell_codes(const struct cell_pair *p, struct cell cell)
{
  return p->codes + (size_t)cell.start * CELL_UNIT * p->n_others;
}

static inline const uint32_t *cell_slots(const struct cell_pair *p, struct cell cell)
{
  return p->slots + (size_t)cell.start * CELL_UNIT;
}

/* Ask for a cell's codes, as far as it is worth it. */
static inline void cell_prefetch(const struct cell_pair *p, struct cell cell)
{
  size_t bytes = cell.n ? p->n_others * cell_entries(cell) : 0;

  for (size_t at = 0; at < bytes && at < 512; at += 64)
    __builtin_prefetch(cell_codes(p, cell) + at);
}

/* Index of an item's cell in a pair. */
static inline size_t cell_of(const struct cells *c, const struct cell_pair *p, const uint8_t *codes)
{
  return p->n_splits == 2 ? codes[p->first] * c->n_subitems + codes[p->first + 1] : codes[p->first];
}

/* All M codes of the i-th item of a cell. */
static inline void cell_read(const struct cells *c, const struct cell_pair *p, size_t index, size_t i, uint8_t *codes)
{
  struct cell cell = p->cells[index];
  const uint8_t *entry = cell_codes(p, cell) + i;

  for (size_t m = 0; m < p->first; m++)
    codes[m] = entry[m * cell_entries(cell)];
  codes[p->first] = (uint8_t)(p->n_splits == 2 ? index / c->n_subitems : index);
  if (p->n_splits == 2)
    codes[p->first + 1] = (uint8_t)(index % c->n_subitems);
  for (size_t m = p->first; m < p->n_others; m++)
    codes[m + p->n_splits] = entry[m * cell_entries(cell)];
}

/* The posting list of a sub-item: cells first, first + step, ... of `pair`. */
struct cell_list {
  const struct cell_pair *pair;
  size_t first;
  size_t step;
  size_t n;
};

struct cell_list cells_list(const struct cells *c, size_t split, size_t subitem);

#endif
