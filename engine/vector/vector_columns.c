/* SPDX-License-Identifier: Apache-2.0 */
/* Puts, moves and removes items in the columns of vector spaces. */
#include "engine/vector/vector_columns.h"

#include "base/mem.h"

static bool has_tail(const struct vector_model *m)
{
  return m->sketch_dim < m->row_dim;
}

static void close_columns(struct columns **columns)
{
  struct vector_columns *c = (struct vector_columns *)*columns;

  if (!c)
    return;
  mem_release(&c->rows, c->capacity, c->model->row_dim * sizeof *c->rows);
  mem_release(&c->norms, c->capacity, sizeof *c->norms);
  vector_sketch_fini(&c->sketch);
  mem_free(columns);
}

static err_t open_columns(const struct model *model, size_t capacity, struct columns **out)
{
  AUTO(close_columns) struct columns *columns = NULL;
  const struct vector_model *m = vector_model_of(model);
  struct vector_columns *c;

  TRY(mem_array(1, sizeof *c, &c));
  columns = &c->base;
  columns->ops = &vector_columns_cpu;
  c->model = m;
  c->capacity = capacity;
  TRY(mem_reserve(capacity, m->row_dim * sizeof *c->rows, &c->rows));
  if (m->base.kind == SIMILARITY_BILINEAR)
    TRY(mem_reserve(capacity, sizeof *c->norms, &c->norms));
  TRY(vector_sketch_init(m->sketch_dim, capacity, has_tail(m), &c->sketch));
  *out = columns;
  columns = NULL;
  return ERR_OK;
}

static size_t bytes_per_item(const struct model *model)
{
  const struct vector_model *m = vector_model_of(model);
  size_t floats = m->row_dim + (m->base.kind == SIMILARITY_BILINEAR ? 1 : 0);

  return floats * sizeof(float) + vector_sketch_bytes_per_item(m->sketch_dim, has_tail(m));
}

static err_t load(struct columns *columns, uint32_t slot, const uint8_t *prepared)
{
  struct vector_columns *c = (struct vector_columns *)columns;
  size_t n = c->model->row_dim;
  const float *row = (const float *)(const void *)prepared;

  memcpy(c->rows + (size_t)slot * n, row, n * sizeof *row);
  if (c->norms)
    c->norms[slot] = row[n + VECTOR_NORM];
  vector_sketch_put(&c->sketch, slot, row, row[n + VECTOR_TAIL]);
  return ERR_OK;
}

static err_t put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared)
{
  (void)is_new;
  return load(columns, slot, prepared);
}

static err_t copy(struct columns *columns, const struct columns *from, uint32_t first, size_t n)
{
  struct vector_columns *c = (struct vector_columns *)columns;
  const struct vector_columns *other = vector_columns_of(from);
  size_t dim = c->model->row_dim;

  memcpy(c->rows + first * dim, other->rows + first * dim, n * dim * sizeof *c->rows);
  if (c->norms)
    memcpy(c->norms + first, other->norms + first, n * sizeof *c->norms);
  vector_sketch_copy(&c->sketch, &other->sketch, first, n);
  return ERR_OK;
}

/* The slot is not admitted any more, so its contents may stay. */
static void drop(struct columns *columns, uint32_t slot)
{
  (void)columns;
  (void)slot;
}

static void move(struct columns *columns, uint32_t from, uint32_t to)
{
  struct vector_columns *c = (struct vector_columns *)columns;
  size_t n = c->model->row_dim;

  memcpy(c->rows + (size_t)to * n, c->rows + (size_t)from * n, n * sizeof *c->rows);
  if (c->norms)
    c->norms[to] = c->norms[from];
  vector_sketch_move(&c->sketch, from, to);
}

static void trim(struct columns *columns, size_t from, size_t to)
{
  struct vector_columns *c = (struct vector_columns *)columns;

  mem_give_back(c->rows, from, to, c->model->row_dim * sizeof *c->rows);
  mem_give_back(c->norms, from, to, sizeof *c->norms);
  vector_sketch_trim(&c->sketch, from, to);
}

/* Of bilinear spaces the rows are rotated: they are no vectors of queries. */
static err_t read_vector(const struct columns *columns, uint32_t slot, struct region *region, struct floats *out)
{
  const struct vector_columns *c = vector_columns_of(columns);
  float *v;

  TRY(region_array(region, c->model->row_dim, sizeof *v, &v));
  memcpy(v, vector_row(c, slot), c->model->row_dim * sizeof *v);
  *out = (struct floats){ v, c->model->row_dim };
  return ERR_OK;
}

const struct columns_ops vector_columns_cpu = {
  .open = open_columns,
  .close = close_columns,
  .bytes_per_item = bytes_per_item,
  .put = put,
  .load = load,
  .copy = copy,
  .drop = drop,
  .move = move,
  .trim = trim,
  .read_vector = read_vector,
};
