/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/recjpq/cells.h"

#include "base/mem.h"

enum { ENTRIES_MAX = (1 << 27) - 1 }; /* of a cell */

static size_t n_cells(const struct cells *c, const struct cell_pair *p)
{
  return p->n_splits == 2 ? c->n_subitems * c->n_subitems : c->n_subitems;
}

static size_t pool_entries(const struct cell_pair *p)
{
  return ((size_t)p->pool.n_units + 1) * CELL_UNIT + PQ_FILTER_PAD;
}

/* More than a quarter of each block is in use, but for the smallest blocks. What free blocks keep apart on top of that
 * is a small part in practice; the worst order of changes is allowed for many times over, in addresses alone. */
static size_t pool_units(size_t n_cells, size_t capacity)
{
  enum { FRAGMENTATION = 8 };
  size_t n_small = n_cells < capacity ? n_cells : capacity;

  return FRAGMENTATION * (4 * capacity / CELL_UNIT + n_small + 1);
}

static err_t init_pair(const struct cells *c, struct cell_pair *p)
{
  TRY(mem_array(n_cells(c, p), sizeof *p->cells, &p->cells));
  TRY(cell_pool_init(pool_units(n_cells(c, p), c->capacity), &p->pool));
  TRY(mem_reserve(pool_entries(p), p->n_others, &p->codes));
  return mem_reserve(pool_entries(p), sizeof *p->slots, &p->slots);
}

err_t cells_init(size_t n_splits, size_t n_subitems, size_t capacity, struct cells *out)
{
  *out = (struct cells){ .n_splits = n_splits, .n_subitems = n_subitems, .capacity = capacity };
  if (capacity > ENTRIES_MAX)
    FAIL(ERR_CONFIG, "catalogue.max_items is %zu; at most %d items fit in a recjpq space", capacity, ENTRIES_MAX);
  TRY(mem_array((n_splits + 1) / 2, sizeof *out->pairs, &out->pairs));
  out->n_pairs = (n_splits + 1) / 2;
  TRY(mem_reserve(capacity, out->n_pairs * sizeof *out->places, &out->places));
  TRY(mem_array(n_splits * n_subitems, sizeof *out->lengths, &out->lengths));
  for (size_t i = 0; i < out->n_pairs; i++) {
    struct cell_pair *p = &out->pairs[i];
    p->first = 2 * i;
    p->n_splits = 2 * i + 1 < n_splits ? 2 : 1;
    p->n_others = n_splits - p->n_splits;
    TRY(init_pair(out, p));
  }
  return ERR_OK;
}

void cells_fini(struct cells *c)
{
  for (size_t i = 0; i < c->n_pairs; i++) {
    struct cell_pair *p = &c->pairs[i];
    mem_release(&p->codes, pool_entries(p), p->n_others);
    mem_release(&p->slots, pool_entries(p), sizeof *p->slots);
    cell_pool_fini(&p->pool);
    mem_free(&p->cells);
  }
  mem_release(&c->places, c->capacity, c->n_pairs * sizeof *c->places);
  mem_free(&c->lengths);
  mem_free(&c->pairs);
}

void cells_trim(struct cells *c, size_t from, size_t to)
{
  mem_give_back(c->places, from, to, c->n_pairs * sizeof *c->places);
  for (size_t i = 0; i < c->n_pairs; i++) {
    struct cell_pair *p = &c->pairs[i];
    if (p->pool.n_taken > 0) /* the items that are left lie all over it */
      continue;
    mem_give_back(p->codes, 0, (size_t)p->pool.n_used * CELL_UNIT, p->n_others);
    mem_give_back(p->slots, 0, (size_t)p->pool.n_used * CELL_UNIT, sizeof *p->slots);
    cell_pool_clear(&p->pool);
  }
}

static size_t entry_bytes(const struct cell_pair *p)
{
  return p->n_others + sizeof *p->slots;
}

size_t cells_bytes(const struct cells *c)
{
  size_t bytes = c->n_splits * c->n_subitems * sizeof *c->lengths;

  for (size_t i = 0; i < c->n_pairs; i++) {
    const struct cell_pair *p = &c->pairs[i];
    bytes += n_cells(c, p) * sizeof *p->cells;
    bytes += p->pool.n_used * (CELL_UNIT * entry_bytes(p) + 1 + 2 * sizeof *p->pool.links);
  }
  return bytes;
}

/* Blocks are between a half and all full as cells grow, three quarters on average, and some are free; test_cells.c
 * measures what this allows for. */
size_t cells_bytes_per_slot(size_t n_splits)
{
  size_t n_pairs = (n_splits + 1) / 2, bytes = 0;

  for (size_t i = 0; i < n_pairs; i++) {
    size_t n_others = n_splits - (2 * i + 1 < n_splits ? 2 : 1);
    bytes += sizeof(uint32_t) + (n_others + sizeof(uint32_t) + 1) * 2;
  }
  return bytes;
}

static uint32_t *place_of(struct cells *c, uint32_t slot, size_t pair)
{
  return &c->places[(size_t)slot * c->n_pairs + pair];
}

static uint8_t *codes_at(const struct cell_pair *p, uint32_t start)
{
  return p->codes + (size_t)start * CELL_UNIT * p->n_others;
}

static uint32_t *slots_at(const struct cell_pair *p, uint32_t start)
{
  return p->slots + (size_t)start * CELL_UNIT;
}

/* Move a cell's items to a block of another size. False: there is none. */
static bool resize(struct cell_pair *p, struct cell *cell, unsigned class)
{
  struct cell old = *cell;
  uint32_t start;

  if (!cell_pool_take(&p->pool, class, &start))
    return false;
  for (size_t m = 0; m < p->n_others; m++)
    memcpy(codes_at(p, start) + m * ((size_t)CELL_UNIT << class), cell_codes(p, old) + m * cell_entries(old), old.n);
  memcpy(slots_at(p, start), cell_slots(p, old), old.n * sizeof *p->slots);
  cell_pool_give(&p->pool, old.class, old.start);
  cell->start = start;
  cell->class = class & 31;
  return true;
}

/* Room for one more. */
static bool make_room(struct cell_pair *p, struct cell *cell)
{
  uint32_t start;

  if (cell->n > 0)
    return cell->n < cell_entries(*cell) || resize(p, cell, cell->class + 1u);
  if (!cell_pool_take(&p->pool, 0, &start))
    return false;
  *cell = (struct cell){ .start = start };
  return true;
}

static void give_room_back(struct cell_pair *p, struct cell *cell)
{
  if (cell->n == 0)
    cell_pool_give(&p->pool, cell->class, cell->start);
  else if (cell->class > 0 && cell->n <= cell_entries(*cell) / 4)
    resize(p, cell, cell->class - 1u); /* where there is no such block it keeps the one that it has */
}

/* Write an entry: codes [M] of which those of the pair are left out. */
static void write_entry(const struct cell_pair *p, struct cell cell, size_t at, uint32_t slot, const uint8_t *codes)
{
  uint8_t *entry = codes_at(p, cell.start) + at;

  for (size_t m = 0; m < p->first; m++)
    entry[m * cell_entries(cell)] = codes[m];
  for (size_t m = p->first; m < p->n_others; m++)
    entry[m * cell_entries(cell)] = codes[m + p->n_splits];
  slots_at(p, cell.start)[at] = slot;
}

static void copy_entry(const struct cell_pair *p, struct cell cell, size_t from, size_t to)
{
  uint8_t *codes = codes_at(p, cell.start);
  uint32_t *slots = slots_at(p, cell.start);

  for (size_t m = 0; m < p->n_others; m++)
    codes[m * cell_entries(cell) + to] = codes[m * cell_entries(cell) + from];
  slots[to] = slots[from];
}

err_t cells_insert(struct cells *c, uint32_t slot, const uint8_t *codes)
{
  for (size_t i = 0; i < c->n_pairs; i++) {
    struct cell_pair *p = &c->pairs[i];
    struct cell *cell = &p->cells[cell_of(c, p, codes)];
    if (!make_room(p, cell))
      FAIL(ERR_MEMORY, "the inverted lists have no room left: they are in too many pieces; a restart joins them");
    write_entry(p, *cell, cell->n, slot, codes);
    *place_of(c, slot, i) = cell->n++;
  }
  for (size_t m = 0; m < c->n_splits; m++)
    c->lengths[m * c->n_subitems + codes[m]]++;
  return ERR_OK;
}

void cells_remove(struct cells *c, uint32_t slot, const uint8_t *codes)
{
  for (size_t i = 0; i < c->n_pairs; i++) {
    struct cell_pair *p = &c->pairs[i];
    struct cell *cell = &p->cells[cell_of(c, p, codes)];
    uint32_t hole = *place_of(c, slot, i), last = --cell->n;
    if (hole != last) {
      copy_entry(p, *cell, last, hole);
      *place_of(c, slots_at(p, cell->start)[hole], i) = hole;
    }
    give_room_back(p, cell);
  }
  for (size_t m = 0; m < c->n_splits; m++)
    c->lengths[m * c->n_subitems + codes[m]]--;
}

void cells_rename(struct cells *c, uint32_t from, uint32_t to, const uint8_t *codes)
{
  for (size_t i = 0; i < c->n_pairs; i++) {
    struct cell_pair *p = &c->pairs[i];
    uint32_t place = *place_of(c, from, i);
    slots_at(p, p->cells[cell_of(c, p, codes)].start)[place] = to;
    *place_of(c, to, i) = place;
  }
}

struct cell_list cells_list(const struct cells *c, size_t split, size_t subitem)
{
  const struct cell_pair *p = &c->pairs[split / 2];

  if (p->n_splits == 1)
    return (struct cell_list){ p, subitem, 1, 1 };
  if (split == p->first)
    return (struct cell_list){ p, subitem * c->n_subitems, 1, c->n_subitems };
  return (struct cell_list){ p, subitem, c->n_subitems, c->n_subitems };
}
