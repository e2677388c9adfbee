/* SPDX-License-Identifier: Apache-2.0 */
/* Puts, moves and removes items in RecJPQ columns. */
#include "engine/recjpq/recjpq_columns.h"

#include "base/mem.h"
#include "engine/recjpq/recjpq_tables.h"

/* Items of a step to build or copy the cells. */
enum { STEP_ITEMS = 1 << 19 };

static size_t n_blocks(size_t capacity)
{
  return (capacity + RECJPQ_BLOCK_ITEMS - 1) / RECJPQ_BLOCK_ITEMS;
}

static void close_columns(struct columns **columns)
{
  struct recjpq_columns *c = (struct recjpq_columns *)*columns;

  if (!c)
    return;
  mem_release(&c->codes, c->capacity, c->model->n_splits);
  mem_release(&c->planes, n_blocks(c->capacity), c->model->n_splits * RECJPQ_BLOCK_ITEMS);
  cells_fini(&c->cells);
  recjpq_present_close(&c->present);
  mem_free(columns);
}

static err_t open_columns(const struct model *model, size_t capacity, struct columns **out)
{
  AUTO(close_columns) struct columns *columns = NULL;
  const struct recjpq_model *m = recjpq_model_of(model);
  struct recjpq_columns *c;

  TRY(mem_array(1, sizeof *c, &c));
  columns = &c->base;
  columns->ops = &recjpq_columns_cpu;
  c->model = m;
  c->capacity = capacity;
  if (m->has_cells)
    TRY(mem_reserve(capacity, m->n_splits, &c->codes));
  TRY(mem_reserve(n_blocks(capacity), m->n_splits * RECJPQ_BLOCK_ITEMS, &c->planes));
  TRY(cells_init(m->n_splits, m->n_subitems, capacity, m->has_cells, &c->cells));
  TRY(recjpq_present_open(m->n_splits, &c->present));
  *out = columns;
  columns = NULL;
  return ERR_OK;
}

static size_t bytes_per_item(const struct model *model)
{
  const struct recjpq_model *m = recjpq_model_of(model);

  return m->has_cells ? 2 * m->n_splits + cells_bytes_per_slot(m->n_splits) : m->n_splits;
}

static void write_codes(struct recjpq_columns *c, uint32_t slot, const uint8_t *codes)
{
  size_t n_splits = c->model->n_splits;
  uint8_t *plane = recjpq_plane_of(c, slot);

  recjpq_present_forget(c->present);
  if (c->codes)
    memcpy(c->codes + (size_t)slot * n_splits, codes, n_splits);
  for (size_t m = 0; m < n_splits; m++)
    plane[m * RECJPQ_BLOCK_ITEMS] = codes[m];
}

static void drop(struct columns *columns, uint32_t slot)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;
  uint8_t codes[RECJPQ_SPLITS_MAX];

  recjpq_codes_read(c, slot, codes);
  cells_remove(&c->cells, slot, codes);
}

static err_t put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  if (!is_new)
    drop(columns, slot);
  write_codes(c, slot, prepared);
  return cells_insert(&c->cells, slot, prepared);
}

static void prefetch(const struct columns *columns, uint32_t slot, const uint8_t *prepared, int step)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  size_t n_splits = c->model->n_splits;

  cells_prefetch(&c->cells, prepared, step);
  if (slot == COLUMNS_NEW_SLOT || step > 0)
    return;
  for (size_t m = 0; m < n_splits; m++)
    __builtin_prefetch(recjpq_plane_of(c, slot) + m * RECJPQ_BLOCK_ITEMS, 1);
  if (c->model->has_cells)
    __builtin_prefetch(c->codes + (size_t)slot * n_splits, 1);
  if (c->cells.n_built > 0)
    __builtin_prefetch(c->cells.places + (size_t)slot * c->cells.n_pairs, 1);
}

static err_t load(struct columns *columns, uint32_t slot, const uint8_t *prepared)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  write_codes(c, slot, prepared);
  cells_count(&c->cells, prepared);
  return ERR_OK;
}

static err_t copy(struct columns *columns, const struct columns *from, uint32_t first, size_t n)
{
  const struct recjpq_columns *other = recjpq_columns_of(from);
  uint8_t codes[RECJPQ_SPLITS_MAX];

  for (uint32_t slot = first; slot < first + n; slot++) {
    recjpq_codes_read(other, slot, codes);
    TRY(load(columns, slot, codes));
  }
  return ERR_OK;
}

static void defer_index(struct columns *columns)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  cells_defer(&c->cells);
}

static err_t build_index(struct columns *columns, const uint64_t *has_part, size_t n_slots)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  return cells_build(&c->cells, c->codes, has_part, n_slots);
}

static err_t continue_index(struct columns *columns, const struct columns *other, const uint64_t *has_part,
                            size_t n_slots)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  if (cells_are_ahead(&recjpq_columns_of(other)->cells, &c->cells))
    return cells_copy_some(&c->cells, &recjpq_columns_of(other)->cells, STEP_ITEMS);
  return cells_build_some(&c->cells, c->codes, has_part, n_slots, STEP_ITEMS);
}

static bool has_index(const struct columns *columns)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);

  return !c->model->has_cells || cells_are_complete(&c->cells);
}

static void move(struct columns *columns, uint32_t from, uint32_t to)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;
  uint8_t codes[RECJPQ_SPLITS_MAX];

  recjpq_codes_read(c, from, codes);
  write_codes(c, to, codes);
  cells_rename(&c->cells, from, to, codes);
}

static void trim(struct columns *columns, size_t from, size_t to)
{
  struct recjpq_columns *c = (struct recjpq_columns *)columns;

  mem_give_back(c->codes, from, to, c->model->n_splits);
  mem_give_back(c->planes, n_blocks(from), n_blocks(to), c->model->n_splits * RECJPQ_BLOCK_ITEMS);
  cells_trim(&c->cells, from, to);
}

/* The item's vector is the centroids of its codes, one after the other. */
static err_t read_vector(const struct columns *columns, uint32_t slot, struct region *region, struct floats *out)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  const struct recjpq_model *m = c->model;
  uint8_t codes[RECJPQ_SPLITS_MAX];
  size_t n = 0;
  float *v;

  TRY(region_array(region, m->n_splits * m->split_dim, sizeof *v, &v));
  recjpq_codes_read(c, slot, codes);
  for (size_t s = 0; s < m->n_splits; s++) {
    for (size_t i = 0; i < m->split_dim; i++, n++)
      v[n] = m->centroids[n * PQ_SUBITEMS + codes[s]];
  }
  *out = (struct floats){ v, n };
  return ERR_OK;
}

const struct columns_ops recjpq_columns_cpu = {
  .open = open_columns,
  .close = close_columns,
  .bytes_per_item = bytes_per_item,
  .put = put,
  .prefetch = prefetch,
  .load = load,
  .copy = copy,
  .drop = drop,
  .move = move,
  .trim = trim,
  .read_vector = read_vector,
  .score_tables = recjpq_tables_make,
  .defer_index = defer_index,
  .build_index = build_index,
  .continue_index = continue_index,
  .has_index = has_index,
};
