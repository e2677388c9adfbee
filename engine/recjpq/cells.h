/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: the inverted index of RecJPQ columns. The M splits are grouped into pairs; if M is odd, the last split is
 * alone. A cell holds the items that have the same two sub-items in one pair of splits.
 *
 * The posting list of one sub-item (L_m of the RecJPQPrune paper) is a row or a column of cells: see cells_list().
 * Pairs bound scores far more sharply than single splits: an item that no pair has visited is outside the best cells of
 * every pair. See recjpq_exact.c.
 *
 * A cell keeps the slots of its items and their codes in the other splits, split by split. They lie in a pool block
 * (cell_pool.h), which doubles when it is full and halves when only a quarter is in use. Each slot knows its place in
 * its cell of each pair. So changing an item costs a few writes for each pair, and nothing is ever rebuilt.
 *
 * Where very many items come at once, building the cells afterwards is ten times as fast as inserting each item. So
 * cells can be deferred. Until they are built, searches scan.
 *
 * Thread: written by the writer of the arena; read by many threads while nobody writes.
 */
#ifndef ENGINE_RECJPQ_CELLS_H
#define ENGINE_RECJPQ_CELLS_H

#include "engine/recjpq/cell_pool.h"
#include "kernels/kernels.h"

enum { CELL_ITEMS_BITS = 27, CELL_ITEMS_MAX = (1 << CELL_ITEMS_BITS) - 1 };

struct cell {
  uint32_t start; /* first unit of its pool block, if n > 0 */
  uint32_t n : CELL_ITEMS_BITS;
  uint32_t class : 32 - CELL_ITEMS_BITS; /* size class of the pool block */
};

struct cell_pair {
  size_t first;          /* its first split */
  size_t n_splits;       /* 2, or 1 */
  size_t n_others;       /* M - n_splits */
  struct cell *cells;    /* [B][B], or [B]: by the code of the first split, then of the second */
  struct cell_pool pool; /* allocates pool blocks in the next two arrays; a unit is CELL_UNIT entries */
  uint8_t *codes;        /* of each pool block: [n_others][entries], the other splits in rising order */
  uint32_t *slots;       /* of each pool block: [entries] */
};

struct cells {
  size_t n_splits;   /* M */
  size_t n_subitems; /* B */
  size_t capacity;   /* slots */
  size_t n_pairs;    /* 0: there are no cells, only `lengths` */
  struct cell_pair *pairs;
  /* Built so far: all cells of the first n_built pairs, and of the pair after them those whose first code is below
   * n_built_codes. The other cells hold no items. */
  size_t n_built, n_built_codes;
  uint32_t *places;  /* [capacity][n_pairs]: the position of a slot in its cell */
  uint32_t *lengths; /* [M][B]: number of items that have a sub-item */
};

/* Reserve memory for `capacity` slots. is_on: false for columns without cells. Returns ERR_CONFIG or ERR_MEMORY; `*out`
 * may be given to cells_fini() then too. */
err_t cells_init(size_t n_splits, size_t n_subitems, size_t capacity, bool is_on, struct cells *out);
void cells_fini(struct cells *c);

/* An estimate for users: the bytes of an item when cells hold a few dozen items, slack included. */
size_t cells_bytes_per_slot(size_t n_splits);

/* Insert a slot into its cells, and remove it with the codes that it was inserted with. codes [M], each < B.
 * cells_insert() returns ERR_MEMORY when the pool is full; the cells must not be used after that. */
err_t cells_insert(struct cells *c, uint32_t slot, const uint8_t *codes);
void cells_remove(struct cells *c, uint32_t slot, const uint8_t *codes);

/* Fetch what cells_insert() will touch into the cache: in step 0 the heads of the cells, in step 1 the places of the
 * entries. */
void cells_prefetch(const struct cells *c, const uint8_t *codes, int step);

/* Let empty cells wait for cells_build(). Until then, what is inserted is counted, and goes to cells that are built. */
void cells_defer(struct cells *c);

/* While no cells are built, or if there are none: cells_insert() of a slot for several threads at once. */
void cells_count(struct cells *c, const uint8_t *codes);

/* Build all cells, in several threads; none is built yet. Or build the next cells that wait, if any.
 *
 * codes    [capacity][M]: of the slots, each < B
 * slots    a bit for each slot that was inserted
 * n_slots  all of these slots are below
 * n_items  take the next codes of one pair until they have so many items
 *
 * Return ERR_MEMORY; the cells must not be used after that. */
err_t cells_build(struct cells *c, const uint8_t *codes, const uint64_t *slots, size_t n_slots);
err_t cells_build_some(struct cells *c, const uint8_t *codes, const uint64_t *slots, size_t n_slots, size_t n_items);

/* Has one building of deferred cells come further than another one, of the same model? */
bool cells_are_ahead(const struct cells *c, const struct cells *of);

/* Copy the next cells that wait from other cells, which are ahead, and hold the same slots with the same codes.
 *
 * from     may be read by searches meanwhile
 * n_items  as in cells_build_some(); no further than the other cells are built
 *
 * Returns ERR_MEMORY; `to` must not be used after that. */
err_t cells_copy_some(struct cells *to, const struct cells *from, size_t n_items);

/* Are there cells, and do they hold all items? */
static inline bool cells_are_complete(const struct cells *c)
{
  return c->n_pairs > 0 && c->n_built == c->n_pairs;
}

/* Give back the memory of slots from..to-1, which are in no cell. Slots from `to` on must not have been in a cell since
 * the last call. A pool gives its memory back when no cell has an item. */
void cells_trim(struct cells *c, size_t from, size_t to);

/* Note that the item of slot `from` has moved to slot `to`. */
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

/* Prefetch a cell's codes, up to 512 bytes: more is not worth it. */
static inline void cell_prefetch(const struct cell_pair *p, struct cell cell)
{
  size_t bytes = cell.n ? p->n_others * cell_entries(cell) : 0;

  for (size_t at = 0; at < bytes && at < 512; at += 64)
    __builtin_prefetch(cell_codes(p, cell) + at);
}

/* The index of an item's cell in a pair. */
static inline size_t cell_of(const struct cells *c, const struct cell_pair *p, const uint8_t *codes)
{
  return p->n_splits == 2 ? codes[p->first] * c->n_subitems + codes[p->first + 1] : codes[p->first];
}

/* Read all M codes of the i-th item of a cell. */
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

/* The posting list of a sub-item: the n cells first, first + step, ... of `pair`. */
struct cell_list {
  const struct cell_pair *pair;
  size_t first;
  size_t step;
  size_t n;
};

struct cell_list cells_list(const struct cells *c, size_t split, size_t subitem);

#endif
