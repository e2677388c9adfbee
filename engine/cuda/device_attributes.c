/* SPDX-License-Identifier: Apache-2.0 */
/* One block of device memory for all columns of an arena, and flushes of marked slots in parts. */
#include "engine/cuda/device_attributes.h"

#include <assert.h>

#include "base/bits.h"
#include "base/mem.h"
#include "kernels/device.h"

enum { CELLS = 1 << 15 /* of a part of a flush */, ALIGN = 256 };

/* Bytes of a slot beside its flags. */
static size_t value_bytes(enum attribute_type type)
{
  switch (type) {
  case ATTRIBUTE_BOOL:
  case ATTRIBUTE_KEYWORDS:
    return 0;
  case ATTRIBUTE_KEYWORD:
    return sizeof(uint32_t);
  default:
    return sizeof(int64_t);
  }
}

size_t device_attributes_bytes_per_slot(const struct attributes *attributes)
{
  size_t bytes = attributes->n;

  for (size_t i = 0; i < attributes->n; i++)
    bytes += value_bytes(attributes->v[i].type);
  return bytes;
}

size_t device_attributes_fixed_bytes(void)
{
  return CELLS * sizeof(struct value_cell) + ATTRIBUTES_MAX * (sizeof(struct value_column) + (size_t)3 * ALIGN);
}

/* Take an array of the block. */
static void *take(struct device_attributes *a, size_t *used, size_t bytes)
{
  void *array = a->memory + *used;

  *used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return array;
}

/* Place the arrays in the block, and describe them to the device. staged has room for the description. */
static err_t place_arrays(struct device_attributes *a, const struct attributes *attributes, size_t n_slots)
{
  void *room = a->staged;
  struct value_column *columns = room;
  size_t used = 0;

  static_assert(ATTRIBUTES_MAX * sizeof(struct value_column) <= CELLS * sizeof(struct value_cell), "it has room");
  a->columns = take(a, &used, a->n * sizeof *columns);
  a->cells = take(a, &used, CELLS * sizeof *a->cells);
  for (size_t i = 0; i < a->n; i++) {
    enum attribute_type type = attributes->v[i].type;
    columns[i] = (struct value_column){ .flags = take(a, &used, n_slots) };
    if (type == ATTRIBUTE_KEYWORD)
      columns[i].codes = take(a, &used, n_slots * sizeof *columns[i].codes);
    else if (value_bytes(type) > 0)
      columns[i].numbers = take(a, &used, n_slots * sizeof *columns[i].numbers);
  }
  return device_copy_in(a->stream, a->columns, columns, a->n * sizeof *columns);
}

static err_t open_arrays(struct device_attributes *a, const struct attributes *attributes, size_t capacity)
{
  size_t n_slots = bits_words(capacity) * 64;
  size_t bytes = device_attributes_fixed_bytes() + n_slots * device_attributes_bytes_per_slot(attributes);

  TRY(device_stream_open(&a->stream));
  TRY(device_alloc_host(CELLS, sizeof *a->staged, &a->staged));
  TRY(device_alloc(bytes, 1, &a->memory));
  TRY(device_fill(a->stream, a->memory, 0, bytes));
  TRY(place_arrays(a, attributes, n_slots));
  return device_wait(a->stream);
}

err_t device_attributes_open(const struct attributes *attributes, size_t capacity, struct device_attributes **out)
{
  AUTO(device_attributes_close) struct device_attributes *a = NULL;

  TRY(mem_array(1, sizeof *a, &a));
  a->n = attributes->n;
  TRY(open_arrays(a, attributes, capacity));
  *out = a;
  a = NULL;
  return ERR_OK;
}

void device_attributes_close(struct device_attributes **a)
{
  if (!*a)
    return;
  device_stream_close(&(*a)->stream); /* first: it may still be working on the memory */
  device_free_host(&(*a)->staged);
  device_free(&(*a)->memory);
  mem_free(a);
}

static err_t write_staged(struct device_attributes *a)
{
  size_t n = a->n_staged;

  a->n_staged = 0;
  if (n == 0)
    return ERR_OK;
  TRY(device_copy_in(a->stream, a->cells, a->staged, n * sizeof *a->staged));
  TRY(value_cells_scatter(a->stream, a->columns, a->cells, n));
  return device_wait(a->stream);
}

/* Stage the final values of marked slots: bit i of `slots` is slot 64 * word + i. */
static err_t stage_word(struct device_attributes *a, const struct attribute_columns *columns, size_t attribute,
                        size_t word, uint64_t slots)
{
  for (; slots; slots &= slots - 1) {
    uint32_t slot = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(slots));
    struct attribute_cell cell = attribute_columns_cell(columns, attribute, slot);
    unsigned flags = (cell.is_present ? VALUE_CELL_PRESENT : 0) | (cell.is_true ? VALUE_CELL_TRUE : 0);
    a->staged[a->n_staged++] = (struct value_cell){
      .value = cell.value, .slot = slot, .attribute = (uint16_t)attribute, .flags = (uint16_t)flags
    };
    if (a->n_staged == CELLS)
      TRY(write_staged(a));
  }
  return ERR_OK;
}

err_t device_attributes_flush(struct device_attributes *a, struct attribute_columns *columns)
{
  for (size_t i = 0; i < a->n; i++) {
    uint64_t slots;
    for (size_t word = 0; attribute_columns_take_marks(columns, i, word, &word, &slots); word++)
      TRY(stage_word(a, columns, i, word, slots));
  }
  return write_staged(a);
}
