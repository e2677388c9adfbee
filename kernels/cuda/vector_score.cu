/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of vector_score.h. One warp scores an entry; its lanes are the 32 partial sums of dot_f64. */
#include "kernels/cuda/vector_score.h"

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/dots.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP_LANES, STEPS = 8 };

/* Most lists are short. So the grid has few more blocks than run at a time, but at least BLOCKS_LEAST per list. */
enum { BLOCKS_TOTAL = 2048, BLOCKS_LEAST = 8 };

static __global__ void __launch_bounds__(THREADS)
    score(struct device_rows rows, const double *q, size_t n, struct device_lists lists)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t length = list_length(lists, list);

  for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP_LANES; i < length; i += gridDim.x * WARPS) {
    size_t at = list * lists.capacity + i;
    const float *row[] = { reinterpret_cast<const float *>(rows.bytes + lists.slots[at] * rows.row_bytes) };
    double sum[1];
    dots_f64<STEPS>(q + list * n, row, n, sum);
    if (warp_lane() == 0)
      lists.scores[at] = (float)sum[0];
  }
}

err_code_t vector_score(struct device_stream *stream, const struct device_rows *rows, const double *q, size_t n,
                        const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(lists->capacity, WARPS);

  if (n_blocks == 0 || lists->n_lists == 0)
    return ERR_OK;
  unsigned n_lists = (unsigned)lists->n_lists, most = max(BLOCKS_TOTAL / n_lists, (unsigned)BLOCKS_LEAST);
  return launch(stream, dim3(min(n_blocks, most), n_lists), THREADS, 0, score, *rows, q, n, *lists);
}
