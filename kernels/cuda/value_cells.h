/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values in device memory, by slot, and the kernel that writes changed ones. */
#ifndef KERNELS_CUDA_VALUE_CELLS_H
#define KERNELS_CUDA_VALUE_CELLS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VALUE_CELL_PRESENT = 1, VALUE_CELL_TRUE = 2 };

/* One attribute's values. All pointers are device pointers. */
struct value_column {
  uint8_t *flags;   /* [slots] VALUE_CELL_... */
  int64_t *numbers; /* [slots] integer, time, number: see attribute_columns_cell(). NULL: it has none */
  uint32_t *codes;  /* [slots] keyword. NULL: it has none */
};

/* A value to write. */
struct value_cell {
  int64_t value;
  uint32_t slot;
  uint16_t attribute;
  uint16_t flags;
};

/* Write n cells, all of different slots or attributes.
 *
 * columns, cells  on the device
 *
 * Returns ERR_DEVICE on failure. */
err_t value_cells_scatter(struct device_stream *stream, const struct value_column *columns,
                          const struct value_cell *cells, size_t n);

#ifdef __cplusplus
}
#endif

#endif
