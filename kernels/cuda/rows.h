/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of items in the device's memory: how batches of changes come into them. */
#ifndef KERNELS_CUDA_ROWS_H
#define KERNELS_CUDA_ROWS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROWS_NONE = -1 };

/* What columns of the device keep of every item, whatever the similarity. All pointers are of the device. */
struct device_rows {
  size_t row_bytes; /* a multiple of 4 */
  uint8_t *bytes;   /* [capacity][row_bytes] */
  uint8_t *present; /* [capacity]: 1 where the slot has a part of this space */
};

/* staging[i] = row of slots[i], for i < n. */
err_t rows_gather(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots, size_t n,
                  uint8_t *staging);

/* Row of slots[i] = staging[sources[i]], and the slot is present; absent where sources[i] is ROWS_NONE. Slots are
 * different. */
err_t rows_scatter(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots,
                   const int32_t *sources, size_t n, const uint8_t *staging);

#ifdef __cplusplus
}
#endif

#endif
