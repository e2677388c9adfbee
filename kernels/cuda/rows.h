/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of items in device memory, and the kernels that apply a batch of changes to them. */
#ifndef KERNELS_CUDA_ROWS_H
#define KERNELS_CUDA_ROWS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROWS_NONE = -1 };

/* The rows that every similarity keeps on the device. All pointers are device pointers. */
struct device_rows {
  size_t row_bytes; /* a multiple of 4 */
  uint8_t *bytes;   /* [capacity][row_bytes] */
  uint8_t *present; /* [capacity]: 1 if the slot has a part of this space */
};

/* Copy the row of slots[i] to staging[i], for i < n. */
err_t rows_gather(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots, size_t n,
                  uint8_t *staging);

/* Copy staging[sources[i]] to the row of slots[i] and mark the slot present; if sources[i] is ROWS_NONE, mark it
 * absent. All slots must be different. */
err_t rows_scatter(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots,
                   const int32_t *sources, size_t n, const uint8_t *staging);

#ifdef __cplusplus
}
#endif

#endif
