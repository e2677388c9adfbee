/* SPDX-License-Identifier: Apache-2.0 */
/* Cells in memory: inserting, removing and moving their entries, and growing and shrinking their pool blocks. */
#include "engine/recjpq/cells.h"

#include "base/mem.h"

static size_t n_cells(const struct cells *c, const struct cell_pair *p)
{
  return p->n_splits == 2 ? c->n_subitems * c->n_subitems : c->n_subitems;
}

static size_t pool_entries(const struct cell_pair *p)
{
  return ((size_t)p->pool.n_units + 1) * CELL_UNIT + PQ_FILTER_PAD;
}

/* Cells use more than a quarter of each pool block, except of the smallest ones. In practice, free blocks add little to
 * that. The reserve allows several times the memory of the worst order of changes, but only as address space. */
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

err_t cells_init(size_t n_splits, size_t n_subitems, size_t capacity, bool is_on, struct cells *out)
{
  *out = (struct cells){ .n_splits = n_splits, .n_subitems = n_subitems, .capacity = capacity };
  TRY(mem_array(n_splits * n_subitems, sizeof *out->lengths, &out->lengths));
  if (!is_on)
    return ERR_OK;
  if (capacity > CELL_ITEMS_MAX)
    FAIL(ERR_CONFIG, "catalogue.max_items is %zu; at most %d items fit in a recjpq space", capacity, CELL_ITEMS_MAX);
  TRY(mem_array((n_splits + 1) / 2, sizeof *out->pairs, &out->pairs));
  out->n_pairs = out->n_built = (n_splits + 1) / 2;
  TRY(mem_reserve(capacity, out->n_pairs * sizeof *out->places, &out->places));
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
    if (p->pool.n_taken > 0) /* the remaining items are spread all over it */
      continue;
    mem_give_back(p->codes, 0, (size_t)p->pool.n_used * CELL_UNIT, p->n_others);
    mem_give_back(p->slots, 0, (size_t)p->pool.n_used * CELL_UNIT, sizeof *p->slots);
    cell_pool_clear(&p->pool);
  }
}

/* A growing cell uses between half and all of its pool block, three quarters on average, and some blocks are free.
 * test_cells.c measures the factor that is allowed here. */
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

/* Move a cell's items to a pool block of another size. Returns false if there is none. */
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

/* Make room for one more entry. Returns false if the pool is full. */
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
    resize(p, cell, cell->class - 1u); /* if the pool has no such block, the cell keeps its present one */
}

/* Write an entry. codes [M]; the codes of the pair itself are not stored. */
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

/* The place of the next entry of a cell, in each row of codes. */
static void prefetch_entry(const struct cell_pair *p, struct cell cell)
{
  const uint8_t *entry = codes_at(p, cell.start) + cell.n;

  for (size_t m = 0; m < p->n_others; m++)
    __builtin_prefetch(entry + m * cell_entries(cell), 1);
  __builtin_prefetch(slots_at(p, cell.start) + cell.n, 1);
}

/* The number of pairs that keep an item in a cell. */
static size_t n_kept(const struct cells *c, const uint8_t *codes)
{
  bool is_in_next = c->n_built < c->n_pairs && codes[c->pairs[c->n_built].first] < c->n_built_codes;

  return c->n_built + is_in_next;
}

void cells_prefetch(const struct cells *c, const uint8_t *codes, int step)
{
  for (size_t i = 0, n = n_kept(c, codes); i < n; i++) {
    const struct cell_pair *p = &c->pairs[i];
    const struct cell *cell = &p->cells[cell_of(c, p, codes)];
    if (step == 0)
      __builtin_prefetch(cell, 1);
    else if (cell->n > 0)
      prefetch_entry(p, *cell);
  }
}

err_t cells_insert(struct cells *c, uint32_t slot, const uint8_t *codes)
{
  for (size_t i = 0, n = n_kept(c, codes); i < n; i++) {
    struct cell_pair *p = &c->pairs[i];
    struct cell *cell = &p->cells[cell_of(c, p, codes)];
    if (!make_room(p, cell))
      FAIL(ERR_MEMORY, "the inverted lists have no room left: their memory is fragmented; a restart repairs that");
    write_entry(p, *cell, cell->n, slot, codes);
    *place_of(c, slot, i) = cell->n++;
  }
  for (size_t m = 0; m < c->n_splits; m++)
    c->lengths[m * c->n_subitems + codes[m]]++;
  return ERR_OK;
}

void cells_remove(struct cells *c, uint32_t slot, const uint8_t *codes)
{
  for (size_t i = 0, n = n_kept(c, codes); i < n; i++) {
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
  for (size_t i = 0, n = n_kept(c, codes); i < n; i++) {
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
