/* SPDX-License-Identifier: Apache-2.0 */
/* Building all cells at once, by a counting sort of the slots for each pair of splits. Several times faster than one
 * insertion after the other: a cell gets its pool block once and in its final size, and its codes are written in order.
 */
#include "engine/recjpq/cells.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "base/cores.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/size.h"

enum {
  PREFETCH_MAX = 16,     /* codes are read this many items ahead */
  THREADS_FROM = 100000, /* for fewer items threads do not pay */
  NOTE_CELLS = 256,      /* cells that are written between two notes of progress */
  CELL_ITEMS_MAX = (1 << 27) - 1
};

void cells_defer(struct cells *c)
{
  c->n_built = 0;
}

void cells_count(struct cells *c, const uint8_t *codes)
{
  for (size_t m = 0; m < c->n_splits; m++)
    __atomic_fetch_add(&c->lengths[m * c->n_subitems + codes[m]], 1, __ATOMIC_RELAXED);
}

/* The slots, and the pairs that threads take. */
struct building {
  struct cells *cells;
  const uint8_t *codes; /* [capacity][M] */
  uint32_t *slots;      /* [n], in rising order */
  size_t n;
  _Atomic size_t next_pair;
  size_t end_pair;
};

static const uint8_t *codes_of(const struct building *b, uint32_t slot)
{
  return b->codes + (size_t)slot * b->cells->n_splits;
}

static size_t n_cells_of(const struct cells *c, const struct cell_pair *p)
{
  return p->n_splits == 2 ? c->n_subitems * c->n_subitems : c->n_subitems;
}

/* Give each cell of the pair the number of its items and the smallest pool block for them.
 *
 * filled  [cells]: zeros, and again zeros afterwards
 */
static err_t take_blocks(const struct building *b, struct cell_pair *p, uint32_t *filled)
{
  size_t n_cells = n_cells_of(b->cells, p);

  for (size_t i = 0; i < b->n; i++)
    filled[cell_of(b->cells, p, codes_of(b, b->slots[i]))]++;
  for (size_t i = 0; i < n_cells; i++) {
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
static void scatter_slots(const struct building *b, struct cell_pair *p, size_t pair, uint32_t *filled)
{
  struct cells *c = b->cells;

  for (size_t i = 0; i < b->n; i++) {
    uint32_t slot = b->slots[i];
    size_t index = cell_of(c, p, codes_of(b, slot));
    uint32_t place = filled[index]++;
    p->slots[(size_t)p->cells[index].start * CELL_UNIT + place] = slot;
    c->places[(size_t)slot * c->n_pairs + pair] = place;
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

static err_t build_pair(const struct building *b, size_t pair, uint32_t *filled)
{
  struct cell_pair *p = &b->cells->pairs[pair];
  size_t n_cells = n_cells_of(b->cells, p);

  memset(filled, 0, n_cells * sizeof *filled);
  TRY(take_blocks(b, p, filled));
  progress_note();
  scatter_slots(b, p, pair, filled);
  for (size_t i = 0; i < n_cells; i++) {
    if (i % NOTE_CELLS == 0)
      progress_note();
    if (i + 1 < n_cells)
      prefetch_codes(b, p, p->cells[i + 1]);
    write_codes(b, p, p->cells[i]);
  }
  return ERR_OK;
}

static err_code_t build_pairs(void *context)
{
  AUTO(mem_free) uint32_t *filled = NULL;
  struct building *b = context;
  size_t pair;

  TRY(mem_array(b->cells->n_subitems * b->cells->n_subitems, sizeof *filled, &filled));
  while ((pair = atomic_fetch_add(&b->next_pair, 1)) < b->end_pair)
    TRY(build_pair(b, pair, filled));
  return ERR_OK;
}

err_t cells_build(struct cells *c, const uint8_t *codes, const uint64_t *slots, size_t n_slots, size_t n)
{
  AUTO(mem_free) uint32_t *list = NULL;
  size_t n_pairs = size_min(n, c->n_pairs - c->n_built);

  if (n_pairs == 0)
    return ERR_OK;
  TRY(mem_array(bits_count(slots, bits_words(n_slots)), sizeof *list, &list));
  struct building b = {
    .cells = c, .codes = codes, .slots = list, .next_pair = c->n_built, .end_pair = c->n_built + n_pairs
  };
  for (uint32_t slot = 0; slot < n_slots; slot++) {
    if (bits_get(slots, slot))
      b.slots[b.n++] = slot;
  }
  TRY(parallel_run(b.n < THREADS_FROM ? 1 : size_min(n_pairs, cores_available()), build_pairs, &b));
  c->n_built = b.end_pair;
  return ERR_OK;
}
