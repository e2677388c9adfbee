/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of averaged vectors (average_score.h). A thread computes one entry and reads the item's row sector by
 * sector. */
#include "kernels/cuda/average_score.h"

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/excluded.cuh"

enum { THREADS = 128 };

static const unsigned blocks_max = 128; /* per list */

static __global__ void __launch_bounds__(THREADS) score(struct average_score_input in, struct device_lists lists)
{
  begin_kernel();
  size_t q = blockIdx.y;
  uint32_t n = list_length(lists, q);
  const float *query = in.queries + q * in.dim;

  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
    uint32_t slot = lists.slots[q * lists.capacity + i];
    const float *average = reinterpret_cast<const float *>(in.rows.bytes + slot * in.rows.row_bytes + in.offset);
    float sum = 0.0f;
#pragma unroll 8
    for (size_t k = 0; k < in.dim; k++)
      sum = fmaf(query[k], average[k], sum);
    lists.scores[q * lists.capacity + i] = sum == sum && !is_excluded(in.excluded, q, slot) ? sum : -INFINITY;
  }
}

err_code_t average_score_lists(struct device_stream *stream, const struct average_score_input *input,
                               const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(lists->capacity, THREADS);

  if (lists->n_lists == 0 || n_blocks == 0)
    return ERR_OK;
  return launch(stream, dim3(n_blocks < blocks_max ? n_blocks : blocks_max, (unsigned)lists->n_lists), THREADS, 0,
                score, *input, *lists);
}
