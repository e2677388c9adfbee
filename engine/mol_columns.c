#include "engine/mol_columns.h"

#include "base/mem.h"
#include "engine/method.h"

static size_t n_blocks(size_t capacity)
{
  return (capacity + DOT_BLOCK_ITEMS - 1) / DOT_BLOCK_ITEMS;
}

static void close_columns(struct columns **columns)
{
  struct mol_columns *c = (struct mol_columns *)*columns;

  if (!c)
    return;
  struct mol_item_layout layout = mol_item_layout(c->model);
  mem_release(&c->components, c->capacity, layout.components * sizeof *c->components);
  mem_release(&c->gates, c->capacity, layout.gate * sizeof *c->gates);
  mem_release(&c->averages, n_blocks(c->capacity), layout.average * DOT_BLOCK_ITEMS * sizeof *c->averages);
  mem_free(columns);
}

static err_t open_columns(const void *model, size_t capacity, struct columns **out)
{
  AUTO(close_columns) struct columns *columns = NULL;
  struct mol_item_layout layout = mol_item_layout(model);
  struct mol_columns *c;

  TRY(mem_array(1, sizeof *c, &c));
  columns = (struct columns *)c;
  c->model = model;
  c->capacity = capacity;
  TRY(mem_reserve(capacity, layout.components * sizeof *c->components, &c->components));
  TRY(mem_reserve(capacity, layout.gate * sizeof *c->gates, &c->gates));
  TRY(mem_reserve(n_blocks(capacity), layout.average * DOT_BLOCK_ITEMS * sizeof *c->averages, &c->averages));
  *out = columns;
  columns = NULL;
  return ERR_OK;
}

static size_t bytes_per_item(const void *model)
{
  struct mol_item_layout layout = mol_item_layout(model);

  return (layout.components + layout.gate + layout.average) * sizeof(float);
}

/* Where number k of a slot's averaged vector lies. */
static float *average_at(const struct mol_columns *c, uint32_t slot, size_t k)
{
  size_t dim = c->model->shape.component_dim;

  return c->averages + (slot / DOT_BLOCK_ITEMS * dim + k) * DOT_BLOCK_ITEMS + slot % DOT_BLOCK_ITEMS;
}

static err_t put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  struct mol_item_layout layout = mol_item_layout(c->model);
  const float *item = (const float *)(const void *)prepared;

  (void)is_new;
  memcpy(c->components + slot * layout.components, item, layout.components * sizeof *item);
  memcpy(c->gates + slot * layout.gate, item + layout.components, layout.gate * sizeof *item);
  for (size_t k = 0; k < layout.average; k++)
    *average_at(c, slot, k) = item[layout.components + layout.gate + k];
  return ERR_OK;
}

static void drop(struct columns *columns, uint32_t slot)
{
  (void)columns; /* the arena knows that the slot has no part: what lies here is never returned */
  (void)slot;
}

static void move(struct columns *columns, uint32_t from, uint32_t to)
{
  struct mol_columns *c = (struct mol_columns *)columns;
  struct mol_item_layout layout = mol_item_layout(c->model);

  memcpy(c->components + to * layout.components, c->components + from * layout.components,
         layout.components * sizeof *c->components);
  memcpy(c->gates + to * layout.gate, c->gates + from * layout.gate, layout.gate * sizeof *c->gates);
  for (size_t k = 0; k < layout.average; k++)
    *average_at(c, to, k) = *average_at(c, from, k);
}

static err_t search(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = (const struct mol_columns *)columns;

  if (method_is(batch->method, "average", 1))
    return mol_search_average(c, batch);
  return mol_search_brute_force(c, batch);
}

const struct columns_ops mol_columns_cpu = {
  .open = open_columns,
  .close = close_columns,
  .bytes_per_item = bytes_per_item,
  .put = put,
  .drop = drop,
  .move = move,
  .search = search,
};
