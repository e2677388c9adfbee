/* SPDX-License-Identifier: Apache-2.0 */
/* Columns in device memory: the rows of all items, arrays that a similarity derives from them, and the log for changes.
 *
 * A similarity supplies its sizes and kernels (struct device_columns_ops) and gets a columns_ops. Writes go to the
 * log. flush writes the log to the device and waits, so a search that begins after the arena is published sees the
 * changes. A full log is flushed early. drop and move return no error; theirs is kept until flush.
 */
#ifndef ENGINE_CUDA_DEVICE_COLUMNS_H
#define ENGINE_CUDA_DEVICE_COLUMNS_H

#include "engine/cuda/row_log.h"
#include "engine/similarity/columns.h"

enum { DERIVED_MAX = 6 };

/* The bytes that a similarity keeps of an item on the device. */
struct device_layout {
  size_t row_bytes;            /* a row: the first row_bytes of a prepared part, unchanged; a multiple of 4 */
  size_t derived[DERIVED_MAX]; /* bytes per item in each derived array; 0: no such array */
};

struct device_columns {
  struct columns base;
  const struct model *model;
  const struct device_columns_ops *ops;
  size_t capacity;
  struct device_layout layout;
  struct device_rows rows;
  void *derived[DERIVED_MAX]; /* [capacity rounded up to DEVICE_TILE_ITEMS][layout.derived]; zero after open */
  void *shared;               /* the model's data on the device, made by ops->open */
  struct row_log log;
  err_code_t err; /* the first error; flush reports it from then on */
};

struct device_columns_ops {
  struct device_layout (*layout)(const struct model *model);

  /* Upload the model's data for searches: `*shared`. May wait for the stream. NULL: none is needed. */
  err_t (*open)(const struct model *model, struct device_stream *stream, void **shared);
  void (*close)(void **shared);

  /* The bytes of that data on the device. NULL: few. */
  size_t (*shared_bytes)(const struct model *model);

  /* Compute the derived arrays of these slots from their rows, in the stream, skipping absent slots. slots [n] on the
   * device. NULL: there are no derived arrays. */
  err_t (*derive)(struct device_columns *c, const uint32_t *slots, size_t n, struct device_stream *stream);
};

/* Items of a tile. A scan may report one bound per tile; derived arrays are padded to whole tiles. */
enum { DEVICE_TILE_ITEMS = 64 };

static inline const struct device_columns *device_columns_of(const struct columns *columns)
{
  return (const struct device_columns *)columns;
}

err_t device_columns_open(const struct columns_ops *base, const struct device_columns_ops *ops,
                          const struct model *model, size_t capacity, struct columns **out);
void device_columns_close(struct columns **columns);
size_t device_columns_bytes_per_item(const struct device_columns_ops *ops, const struct model *model);
size_t device_columns_fixed_bytes(const struct device_columns_ops *ops, const struct model *model);
err_t device_columns_put(struct columns *columns, uint32_t slot, bool is_new, const uint8_t *prepared);
err_t device_columns_copy(struct columns *columns, const struct columns *from, uint32_t first, size_t n);
void device_columns_drop(struct columns *columns, uint32_t slot);
void device_columns_move(struct columns *columns, uint32_t from, uint32_t to);
err_t device_columns_flush(struct columns *columns);

/* Define a columns_ops called `name` from a device_columns_ops. What follows that are more initialisers of it. */
#define DEVICE_COLUMNS(name, device_ops, ...)                                                \
  static err_t name##_open(const struct model *model, size_t capacity, struct columns **out) \
  {                                                                                          \
    return device_columns_open(&(name), &(device_ops), model, capacity, out);                \
  }                                                                                          \
  static size_t name##_bytes_per_item(const struct model *model)                             \
  {                                                                                          \
    return device_columns_bytes_per_item(&(device_ops), model);                              \
  }                                                                                          \
  static size_t name##_fixed_bytes(const struct model *model)                                \
  {                                                                                          \
    return device_columns_fixed_bytes(&(device_ops), model);                                 \
  }                                                                                          \
  const struct columns_ops name = { .open = name##_open,                                     \
                                    .close = device_columns_close,                           \
                                    .bytes_per_item = name##_bytes_per_item,                 \
                                    .fixed_bytes = name##_fixed_bytes,                       \
                                    .put = device_columns_put,                               \
                                    .copy = device_columns_copy,                             \
                                    .drop = device_columns_drop,                             \
                                    .move = device_columns_move,                             \
                                    .flush = device_columns_flush,                           \
                                    __VA_ARGS__ }

#endif
