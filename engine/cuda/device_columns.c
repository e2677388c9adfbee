/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that every similarity shares on the device (device_columns.h): arrays, and writes through the log. */
#include "engine/cuda/device_columns.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/cuda/device_worker.h"

static size_t whole_tiles(size_t n)
{
  return (n + DEVICE_TILE_ITEMS - 1) / DEVICE_TILE_ITEMS * DEVICE_TILE_ITEMS;
}

void device_columns_close(struct columns **columns)
{
  struct device_columns *c = (struct device_columns *)*columns;

  if (!c)
    return;
  row_log_close(&c->log); /* first: its stream may still be working on the other arrays */
  if (c->shared)
    c->ops->close(&c->shared);
  for (size_t i = 0; i < DERIVED_MAX; i++)
    device_free(&c->derived[i]);
  device_free(&c->rows.bytes);
  device_free(&c->rows.present);
  mem_free(columns);
}

static err_t alloc_zeros(struct device_columns *c, size_t n, size_t size, void *out)
{
  void *memory;

  TRY(device_alloc(n, size, &memory));
  mem_pointer_set(out, memory);
  return device_fill(c->log.stream, memory, 0, n * size);
}

static err_t open_arrays(struct device_columns *c)
{
  size_t n = whole_tiles(c->capacity);

  TRY(row_log_open(c->layout.row_bytes, c->capacity, &c->log));
  c->rows.row_bytes = c->layout.row_bytes;
  TRY(alloc_zeros(c, n, c->layout.row_bytes, &c->rows.bytes));
  TRY(alloc_zeros(c, n, 1, &c->rows.present));
  for (size_t i = 0; i < DERIVED_MAX; i++) {
    if (c->layout.derived[i])
      TRY(alloc_zeros(c, n, c->layout.derived[i], &c->derived[i]));
  }
  if (c->ops->open)
    TRY(c->ops->open(c->model, c->log.stream, &c->shared));
  return device_wait(c->log.stream);
}

err_t device_columns_open(const struct columns_ops *base, const struct device_columns_ops *ops,
                          const struct model *model, size_t capacity, struct columns **out)
{
  AUTO(device_columns_close) struct columns *columns = NULL;
  struct device_columns *c;

  TRY(mem_array(1, sizeof *c, &c));
  columns = &c->base;
  columns->ops = base;
  c->model = model;
  c->ops = ops;
  c->capacity = capacity;
  c->layout = ops->layout(model);
  TRY(open_arrays(c));
  *out = columns;
  columns = NULL;
  return ERR_OK;
}

size_t device_columns_bytes_per_item(const struct device_columns_ops *ops, const struct model *model)
{
  struct device_layout layout = ops->layout(model);
  size_t bytes = layout.row_bytes + 1;

  for (size_t i = 0; i < DERIVED_MAX; i++)
    bytes += layout.derived[i];
  return bytes;
}

size_t device_columns_fixed_bytes(const struct device_columns_ops *ops, const struct model *model)
{
  return row_log_device_bytes(ops->layout(model).row_bytes) + (ops->shared_bytes ? ops->shared_bytes(model) : 0);
}

static err_t write_log(struct device_columns *c)
{
  const uint32_t *changed;
  size_t n;

  if (c->log.n_changes == 0)
    return ERR_OK;
  TRY(row_log_write(&c->log, &c->rows, &changed, &n));
  if (c->ops->derive && n > 0)
    TRY(c->ops->derive(c, changed, n, c->log.stream));
  TRY(device_wait(c->log.stream));
  row_log_clear(&c->log);
  return ERR_OK;
}

err_t device_columns_flush(struct columns *columns)
{
  struct device_columns *c = (struct device_columns *)columns;

  if (c->err == ERR_OK)
    c->err = write_log(c);
  return c->err;
}

/* Return the log, with room for a change. NULL after an error, which flush reports. */
static struct row_log *log_with_room(struct device_columns *c)
{
  if (c->err == ERR_OK && !row_log_has_room(&c->log))
    c->err = write_log(c);
  return c->err == ERR_OK ? &c->log : NULL;
}

err_t device_columns_put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared)
{
  struct device_columns *c = (struct device_columns *)columns;
  struct row_log *log = log_with_room(c);

  (void)is_new;
  if (log)
    row_log_put(log, slot, prepared);
  return c->err;
}

void device_columns_drop(struct columns *columns, uint32_t slot)
{
  struct row_log *log = log_with_room((struct device_columns *)columns);

  if (log)
    row_log_drop(log, slot);
}

void device_columns_move(struct columns *columns, uint32_t from, uint32_t to)
{
  struct row_log *log = log_with_room((struct device_columns *)columns);

  if (log)
    row_log_move(log, from, to);
}

static err_t copy_rows(struct device_columns *c, const struct device_columns *from, uint32_t first, size_t n)
{
  struct device_stream *stream = c->log.stream;
  size_t row_bytes = c->rows.row_bytes;

  TRY(device_copy(stream, c->rows.bytes + first * row_bytes, from->rows.bytes + first * row_bytes, n * row_bytes));
  TRY(device_copy(stream, c->rows.present + first, from->rows.present + first, n));
  if (c->ops->derive) {
    for (size_t i = 0; i < n; i++)
      c->log.slots[i] = first + (uint32_t)i;
    TRY(device_copy_in(stream, c->log.device_slots, c->log.slots, n * sizeof *c->log.slots));
    TRY(c->ops->derive(c, c->log.device_slots, n, stream));
  }
  return device_wait(stream);
}

err_t device_columns_copy(struct columns *columns, const struct columns *from, uint32_t first, size_t n)
{
  struct device_columns *c = (struct device_columns *)columns;

  static_assert((int)LOAD_BLOCK_SLOTS <= (int)ROW_LOG_SLOTS, "the log's array of slots has room for a block");
  if (c->err == ERR_OK)
    c->err = copy_rows(c, device_columns_of(from), first, n);
  return c->err;
}
