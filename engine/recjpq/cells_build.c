/* SPDX-License-Identifier: Apache-2.0 */
/* Building all cells at once, by a counting sort of the slots for each pair of splits. Several times faster than one
 * insertion after the other: a cell gets its pool block once and in its final size, and its codes are written in order.
 */
#include <assert.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "base/cores.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/size.h"
#include "engine/recjpq/cell_range.h"

enum {
  PREFETCH_MAX = 16,     /* codes are read this many items ahead */
  THREADS_FROM = 100000, /* for fewer items threads do not pay */
  NOTE_CELLS = 256,      /* cells that are written, and */
  NOTE_SLOTS = 1 << 16,  /* slots that are looked at between two notes of progress */
};

void cells_defer(struct cells *c)
{
  for (size_t i = 0; i < c->n_pairs; i++)
    assert(c->pairs[i].pool.n_taken == 0);
  c->n_built = c->n_built_codes = 0;
}

void cells_count(struct cells *c, const uint8_t *codes)
{
  for (size_t m = 0; m < c->n_splits; m++)
    __atomic_fetch_add(&c->lengths[m * c->n_subitems + codes[m]], 1, __ATOMIC_RELAXED);
}

/* The slots of a range, or of all ranges that threads take. */
struct building {
  struct cells *cells;
  const uint8_t *codes; /* [capacity][M] */
  uint32_t *slots;      /* [n], in rising order */
  size_t n;
  _Atomic size_t next_pair;
};

static const uint8_t *codes_of(const struct building *b, uint32_t slot)
{
  return b->codes + (size_t)slot * b->cells->n_splits;
}

/* Give each cell the number of its items and the smallest pool block for them.
 *
 * filled  [cells of the pair]: zeros, and again zeros afterwards
 */
static err_t take_blocks(const struct building *b, const struct cell_range *r, uint32_t *filled)
{
  struct cell_pair *p = r->pair;
  size_t end = cell_range_n_below(b->cells, p, r->end);

  for (size_t i = 0; i < b->n; i++)
    filled[cell_of(b->cells, p, codes_of(b, b->slots[i]))]++;
  for (size_t i = cell_range_n_below(b->cells, p, r->from); i < end; i++) {
    struct cell cell = { .n = filled[i] & CELL_ITEMS_MAX };
    if (cell.n == 0)
      continue;
    while (cell_entries(cell) < cell.n)
      cell.class ++;
    if (!cell_pool_take(&p->pool, cell.class, &cell.start))
      FAIL(ERR_MEMORY, "the inverted lists have no room for %zu items", b->n);
    p->cells[i] = cell;
    filled[i] = 0;
  }
  return ERR_OK;
}

/* Write each slot into its cell. */
static void scatter_slots(const struct building *b, const struct cell_range *r, uint32_t *filled)
{
  struct cells *c = b->cells;

  for (size_t i = 0; i < b->n; i++) {
    uint32_t slot = b->slots[i];
    size_t index = cell_of(c, r->pair, codes_of(b, slot));
    uint32_t place = filled[index]++;
    r->pair->slots[(size_t)r->pair->cells[index].start * CELL_UNIT + place] = slot;
    c->places[(size_t)slot * c->n_pairs + r->place] = place;
  }
}

/* The codes of a cell's items lie anywhere in the catalogue. */
static void prefetch_codes(const struct building *b, const struct cell_pair *p, struct cell cell)
{
  for (size_t i = 0; i < cell.n && i < PREFETCH_MAX; i++)
    __builtin_prefetch(codes_of(b, cell_slots(p, cell)[i]));
}

static void write_codes(const struct building *b, struct cell_pair *p, struct cell cell)
{
  const uint32_t *slots = cell_slots(p, cell);
  uint8_t *to = p->codes + (size_t)cell.start * CELL_UNIT * p->n_others;
  size_t entries = cell_entries(cell);

  for (size_t i = 0; i < cell.n; i++) {
    const uint8_t *codes = codes_of(b, slots[i]);
    if (i + PREFETCH_MAX < cell.n)
      __builtin_prefetch(codes_of(b, slots[i + PREFETCH_MAX]));
    for (size_t m = 0; m < p->first; m++)
      to[m * entries + i] = codes[m];
    for (size_t m = p->first; m < p->n_others; m++)
      to[m * entries + i] = codes[m + p->n_splits];
  }
}

/* Build the cells of a range from the slots that belong there. */
static err_t build_range(const struct building *b, const struct cell_range *r, uint32_t *filled)
{
  struct cell_pair *p = r->pair;
  size_t end = cell_range_n_below(b->cells, p, r->end);

  TRY(take_blocks(b, r, filled));
  progress_note();
  scatter_slots(b, r, filled);
  for (size_t i = cell_range_n_below(b->cells, p, r->from); i < end; i++) {
    if (i % NOTE_CELLS == 0)
      progress_note();
    if (i + 1 < end)
      prefetch_codes(b, p, p->cells[i + 1]);
    write_codes(b, p, p->cells[i]);
  }
  return ERR_OK;
}

static err_code_t build_pairs(void *context)
{
  AUTO(mem_free) uint32_t *filled = NULL;
  struct building *b = context;
  size_t n_subitems = b->cells->n_subitems, i;

  TRY(mem_array(n_subitems * n_subitems, sizeof *filled, &filled));
  while ((i = atomic_fetch_add(&b->next_pair, 1)) < b->cells->n_pairs) {
    struct cell_range all = { &b->cells->pairs[i], i, 0, n_subitems };
    TRY(build_range(b, &all, filled));
    memset(filled, 0, n_subitems * n_subitems * sizeof *filled);
  }
  return ERR_OK;
}

static size_t count_items(const struct cells *c, const struct cell_range *r)
{
  size_t n = 0;

  for (size_t code = r->from; code < r->end; code++)
    n += c->lengths[r->pair->first * c->n_subitems + code];
  return n;
}

/* List the slots of a range. Whether a slot is in it cannot be predicted, so each is written, and the next one writes
 * over it if it is not. */
static err_t list_slots(struct building *b, const uint64_t *slots, size_t n_slots, const struct cell_range *r)
{
  size_t n = 0, n_codes = r->end - r->from;

  TRY(mem_array(count_items(b->cells, r) + 1, sizeof *b->slots, &b->slots));
  for (uint32_t slot = 0; slot < n_slots; slot++) {
    size_t code = codes_of(b, slot)[r->pair->first];
    if (slot % NOTE_SLOTS == 0)
      progress_note();
    b->slots[n] = slot;
    n += bits_get(slots, slot) & (code - r->from < n_codes);
  }
  b->n = n;
  return ERR_OK;
}

static void building_fini(struct building *b)
{
  mem_free(&b->slots);
}

err_t cells_build(struct cells *c, const uint8_t *codes, const uint64_t *slots, size_t n_slots)
{
  AUTO(building_fini) struct building b = { .cells = c, .codes = codes };

  if (c->n_pairs == 0)
    return ERR_OK;
  assert(c->n_built == 0 && c->n_built_codes == 0);
  struct cell_range all = { c->pairs, 0, 0, c->n_subitems };
  TRY(list_slots(&b, slots, n_slots, &all));
  TRY(parallel_run(b.n < THREADS_FROM ? 1 : size_min(c->n_pairs, cores_available()), build_pairs, &b));
  c->n_built = c->n_pairs;
  return ERR_OK;
}

err_t cells_build_some(struct cells *c, const uint8_t *codes, const uint64_t *slots, size_t n_slots, size_t n_items)
{
  AUTO(building_fini) struct building b = { .cells = c, .codes = codes };
  AUTO(mem_free) uint32_t *filled = NULL;

  if (c->n_built == c->n_pairs)
    return ERR_OK;
  struct cell_range range = cell_range_next(c, n_items);
  TRY(list_slots(&b, slots, n_slots, &range));
  TRY(mem_array(cell_range_n_below(c, range.pair, c->n_subitems), sizeof *filled, &filled));
  TRY(build_range(&b, &range, filled));
  cell_range_finish(c, &range);
  return ERR_OK;
}
