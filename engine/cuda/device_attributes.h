/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of an arena's attribute columns in device memory, from which the device makes words of filters.
 *
 * Each arena of the pair has its own, as it has its own rows. The copies have no moves and no order of changes: what a
 * batch has touched is marked in the columns, and a flush copies the final value of each marked slot. Texts are codes
 * of the arena's own dictionary. The texts of sets are not copied (docs/gpu.md says why), only that there is a set.
 *
 * Thread: catalogue, while the arena is in the back. Any worker's kernels read the columns while it is in front.
 * Everything is allocated at open.
 */
#ifndef ENGINE_CUDA_DEVICE_ATTRIBUTES_H
#define ENGINE_CUDA_DEVICE_ATTRIBUTES_H

#include "engine/attributes/attribute_columns.h"
#include "kernels/cuda/value_cells.h"

struct device_attributes {
  size_t n;                     /* attributes */
  uint8_t *memory;              /* of all arrays below that are on the device */
  struct value_column *columns; /* [n] on the device */
  struct value_cell *cells;     /* on the device: a part of a flush */
  struct value_cell *staged;    /* the same in pinned host memory */
  size_t n_staged;
  struct device_stream *stream;
};

/* The device memory of one arena's copies: for each slot, and besides. */
size_t device_attributes_bytes_per_slot(const struct attributes *attributes);
size_t device_attributes_fixed_bytes(void);

/* Open copies of empty columns of `capacity` slots. Returns ERR_MEMORY or ERR_DEVICE. */
err_t device_attributes_open(const struct attributes *attributes, size_t capacity, struct device_attributes **out);
void device_attributes_close(struct device_attributes **a);

/* Copy what is marked in the columns, and wait. Searches that begin afterwards see it. Returns ERR_DEVICE; then the
 * copies cannot be used any more. */
err_t device_attributes_flush(struct device_attributes *a, struct attribute_columns *columns);

#endif
