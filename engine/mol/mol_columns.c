/* SPDX-License-Identifier: Apache-2.0 */
/* Puts, moves and removes items in Mixture-of-Logits columns. */
#include "engine/mol/mol_columns.h"

#include "base/mem.h"

static size_t n_blocks(size_t capacity)
{
  return (capacity + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS;
}

static void close_columns(struct columns **columns)
{
  struct mol_columns *c = (struct mol_columns *)*columns;

  if (!c)
    return;
  struct mol_item_layout layout = mol_item_layout(c->model);
  size_t blocks = n_blocks(c->capacity);
  mem_release(&c->components, c->capacity, layout.components * sizeof *c->components);
  mem_release(&c->gates, c->capacity, layout.gate * sizeof *c->gates);
  mem_release(&c->averages, c->capacity, layout.average * sizeof *c->averages);
  mem_release(&c->sketches, blocks, layout.sketch * SKETCH_BLOCK_ITEMS);
  mem_release(&c->short_averages, blocks, layout.short_average * SKETCH_BLOCK_ITEMS * sizeof *c->short_averages);
  mem_free(columns);
}

static err_t open_columns(const struct model *model, size_t capacity, struct columns **out)
{
  AUTO(close_columns) struct columns *columns = NULL;
  struct mol_item_layout layout = mol_item_layout(mol_model_of(model));
  size_t blocks = n_blocks(capacity);
  struct mol_columns *c;

  TRY(mem_array(1, sizeof *c, &c));
  columns = &c->base;
  columns->ops = &mol_columns_cpu;
  c->model = mol_model_of(model);
  c->capacity = capacity;
  TRY(mem_reserve(capacity, layout.components * sizeof *c->components, &c->components));
  TRY(mem_reserve(capacity, layout.gate * sizeof *c->gates, &c->gates));
  TRY(mem_reserve(capacity, layout.average * sizeof *c->averages, &c->averages));
  TRY(mem_reserve(blocks, layout.sketch * SKETCH_BLOCK_ITEMS, &c->sketches));
  TRY(mem_reserve(blocks, layout.short_average * SKETCH_BLOCK_ITEMS * sizeof *c->short_averages, &c->short_averages));
  *out = columns;
  columns = NULL;
  return ERR_OK;
}

static size_t bytes_per_item(const struct model *model)
{
  struct mol_item_layout layout = mol_item_layout(mol_model_of(model));

  return mol_item_bytes(&layout) - layout.residual * sizeof(float);
}

/* Return the address of group g (four bytes) of a slot's array. Within a block, group g of all slots lies together. */
static uint8_t *group_at(void *array, uint32_t slot, size_t n_groups, size_t g)
{
  return (uint8_t *)array +
         ((slot / SKETCH_BLOCK_ITEMS * n_groups + g) * SKETCH_BLOCK_ITEMS + slot % SKETCH_BLOCK_ITEMS) * 4;
}

static void put_groups(const void *from, size_t n_bytes, void *array, uint32_t slot)
{
  for (size_t g = 0; g < n_bytes / 4; g++)
    memcpy(group_at(array, slot, n_bytes / 4, g), (const uint8_t *)from + 4 * g, 4);
}

static void move_groups(size_t n_bytes, void *array, uint32_t from, uint32_t to)
{
  for (size_t g = 0; g < n_bytes / 4; g++)
    memcpy(group_at(array, to, n_bytes / 4, g), group_at(array, from, n_bytes / 4, g), 4);
}

/* Several threads may load the columns. */
static void note_residual(struct mol_columns *c, float residual)
{
  float old;

  __atomic_load(&c->residual, &old, __ATOMIC_RELAXED);
  while (residual > old &&
         !__atomic_compare_exchange(&c->residual, &old, &residual, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

static err_t load(struct columns *columns, uint32_t slot, const uint8_t *prepared)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  struct mol_item_layout layout = mol_item_layout(c->model);
  struct mol_item item = mol_item_at(&layout, (uint8_t *)(uintptr_t)prepared);

  memcpy(c->components + slot * layout.components, item.components, layout.components * sizeof(float));
  memcpy(c->gates + slot * layout.gate, item.gate, layout.gate * sizeof(float));
  memcpy(c->averages + slot * layout.average, item.average, layout.average * sizeof(float));
  put_groups(item.sketch, layout.sketch, c->sketches, slot);
  put_groups(item.short_average, layout.short_average * sizeof(int16_t), c->short_averages, slot);
  note_residual(c, *item.residual);
  return ERR_OK;
}

static err_t put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared)
{
  (void)is_new;
  return load(columns, slot, prepared);
}

/* Copy elements first..end-1 of an array. */
static void copy_elements(void *to, const void *from, size_t first, size_t end, size_t bytes)
{
  memcpy((uint8_t *)to + first * bytes, (const uint8_t *)from + first * bytes, (end - first) * bytes);
}

static err_t copy(struct columns *columns, const struct columns *from, uint32_t first, size_t n)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  const struct mol_columns *other = mol_columns_of(from);
  struct mol_item_layout layout = mol_item_layout(c->model);
  size_t end = first + n, block = first / SKETCH_BLOCK_ITEMS;

  copy_elements(c->components, other->components, first, end, layout.components * sizeof(float));
  copy_elements(c->gates, other->gates, first, end, layout.gate * sizeof(float));
  copy_elements(c->averages, other->averages, first, end, layout.average * sizeof(float));
  copy_elements(c->sketches, other->sketches, block, n_blocks(end), layout.sketch * SKETCH_BLOCK_ITEMS);
  copy_elements(c->short_averages, other->short_averages, block, n_blocks(end),
                layout.short_average * SKETCH_BLOCK_ITEMS * sizeof(int16_t));
  note_residual(c, other->residual);
  return ERR_OK;
}

static void drop(struct columns *columns, uint32_t slot)
{
  (void)columns; /* the arena knows that the slot has no part: its contents are never returned */
  (void)slot;
}

static void move(struct columns *columns, uint32_t from, uint32_t to)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  struct mol_item_layout layout = mol_item_layout(c->model);

  memcpy(c->components + to * layout.components, c->components + from * layout.components,
         layout.components * sizeof(float));
  memcpy(c->gates + to * layout.gate, c->gates + from * layout.gate, layout.gate * sizeof(float));
  memcpy(c->averages + to * layout.average, c->averages + from * layout.average, layout.average * sizeof(float));
  move_groups(layout.sketch, c->sketches, from, to);
  move_groups(layout.short_average * sizeof(int16_t), c->short_averages, from, to);
}

static void trim(struct columns *columns, size_t from, size_t to)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  struct mol_item_layout layout = mol_item_layout(c->model);

  mem_give_back(c->components, from, to, layout.components * sizeof *c->components);
  mem_give_back(c->gates, from, to, layout.gate * sizeof *c->gates);
  mem_give_back(c->averages, from, to, layout.average * sizeof *c->averages);
  mem_give_back(c->sketches, n_blocks(from), n_blocks(to), layout.sketch * SKETCH_BLOCK_ITEMS);
  mem_give_back(c->short_averages, n_blocks(from), n_blocks(to),
                layout.short_average * SKETCH_BLOCK_ITEMS * sizeof *c->short_averages);
}

/* The item's vector is its components, one after the other. Each has the same length. */
static err_t read_vector(const struct columns *columns, uint32_t slot, struct region *region, struct floats *out)
{
  const struct mol_columns *c = mol_columns_of(columns);
  size_t n = mol_item_layout(c->model).components;
  float *v;

  TRY(region_array(region, n, sizeof *v, &v));
  memcpy(v, c->components + slot * n, n * sizeof *v);
  *out = (struct floats){ v, n };
  return ERR_OK;
}

const struct columns_ops mol_columns_cpu = {
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
