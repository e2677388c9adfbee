/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of vector_score.h. One warp scores an entry; its lanes are the 32 partial sums of dot_f64. */
#include "kernels/cuda/vector_score.h"

#include "kernels/cuda/append.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP_LANES, TOGETHER = 8 };

/* Most lists are short. So the grid has few more blocks than run at a time, but at least BLOCKS_LEAST per list. */
enum { BLOCKS_TOTAL = 2048, BLOCKS_LEAST = 8 };

/* Return the dot product in every lane. */
static __device__ __forceinline__ double dot_f64(const double *q, const float *row, size_t n)
{
  double sum = 0;
  size_t first = 0;

  /* Without a branch between them, TOGETHER numbers of each are read at the same time. */
  for (; first + TOGETHER * WARP_LANES <= n; first += TOGETHER * WARP_LANES) {
    double mine[TOGETHER];
    float numbers[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
      mine[i] = q[first + i * WARP_LANES + warp_lane()];
      numbers[i] = row[first + i * WARP_LANES + warp_lane()];
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      sum = fma(mine[i], (double)numbers[i], sum);
  }
  for (; first < n; first += WARP_LANES) {
    size_t k = first + warp_lane();
    sum = fma(k < n ? q[k] : 0.0, k < n ? (double)row[k] : 0.0, sum);
  }
  for (int half = WARP_LANES / 2; half > 0; half /= 2)
    sum += __shfl_xor_sync(WARP_ALL, sum, half);
  return sum;
}

static __global__ void __launch_bounds__(THREADS)
    score(struct device_rows rows, const double *q, size_t n, struct device_lists lists)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t length = list_length(lists, list);

  for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP_LANES; i < length; i += gridDim.x * WARPS) {
    size_t at = list * lists.capacity + i;
    double sum =
        dot_f64(q + list * n, reinterpret_cast<const float *>(rows.bytes + lists.slots[at] * rows.row_bytes), n);
    if (warp_lane() == 0)
      lists.scores[at] = (float)sum;
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
