/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of rows.h. A warp copies one row. */
#include "kernels/cuda/rows.h"

#include "kernels/cuda/launch.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP_LANES };

static __device__ void copy_row(uint8_t *to, const uint8_t *from, size_t bytes)
{
  for (size_t i = threadIdx.x % WARP_LANES; i < bytes / 4; i += WARP_LANES)
    reinterpret_cast<uint32_t *>(to)[i] = reinterpret_cast<const uint32_t *>(from)[i];
}

static __global__ void gather(struct device_rows rows, const uint32_t *slots, size_t n, uint8_t *staging)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i < n)
    copy_row(staging + i * rows.row_bytes, rows.bytes + slots[i] * rows.row_bytes, rows.row_bytes);
}

static __global__ void scatter(struct device_rows rows, const uint32_t *slots, const int32_t *sources, size_t n,
                               const uint8_t *staging)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i >= n)
    return;
  if (sources[i] != ROWS_NONE)
    copy_row(rows.bytes + slots[i] * rows.row_bytes, staging + (size_t)sources[i] * rows.row_bytes, rows.row_bytes);
  if (threadIdx.x % WARP_LANES == 0)
    rows.present[slots[i]] = sources[i] != ROWS_NONE;
}

err_code_t rows_gather(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots, size_t n,
                       uint8_t *staging)
{
  return n ? launch(stream, blocks_for(n, WARPS), THREADS, 0, gather, *rows, slots, n, staging) : ERR_OK;
}

err_code_t rows_scatter(struct device_stream *stream, const struct device_rows *rows, const uint32_t *slots,
                        const int32_t *sources, size_t n, const uint8_t *staging)
{
  return n ? launch(stream, blocks_for(n, WARPS), THREADS, 0, scatter, *rows, slots, sources, n, staging) : ERR_OK;
}
