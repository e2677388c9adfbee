/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of averaged vectors (average_score.h).
 *
 * A warp scores 32 entries at a time, each lane one of them, because the sum's order is fixed. The items' rows are
 * aligned to 4 bytes only. So the warp copies them to shared memory one row after the other, each with adjacent lanes
 * for adjacent numbers, and all copies are under way at the same time.
 */
#include "kernels/cuda/average_score.h"

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/excluded.cuh"

enum {
  THREADS = 128,
  WARPS = THREADS / WARP_LANES,
  PIECE = WARP_LANES,                        /* numbers of a row in shared memory at a time */
  PITCH = PIECE + 1,                         /* lanes that read the same number of their rows use different banks */
  PIECE_FLOATS = PIECE + WARP_LANES * PITCH, /* a piece of the query, then of the rows */
};

/* Most lists are far from full. So the grid has few more blocks than run at a time, but at least BLOCKS_LEAST per list.
 */
enum { BLOCKS_TOTAL = 3072, BLOCKS_LEAST = 32 };

/* Copy the n numbers from k on of the query and of the rows of all lanes' slots. The whole warp calls this. */
static __device__ __forceinline__ void copy_piece(const struct average_score_input &in, const float *query,
                                                  uint32_t slot, size_t k, unsigned n, float *piece)
{
  unsigned lane = warp_lane(), row_bytes = (unsigned)in.rows.row_bytes;
  const uint8_t *averages = in.rows.bytes + in.offset + (k + lane) * sizeof(float);
  float *to = piece + lane;

  __syncwarp(); /* all lanes have read the piece before */
  if (lane < n)
    copy_async_float(to, query + k + lane);
#pragma unroll
  for (unsigned i = 0; i < WARP_LANES; i++) {
    uint64_t at = (uint64_t)__shfl_sync(WARP_ALL, slot, i) * row_bytes;
    if (lane < n)
      copy_async_float(to + PIECE + i * PITCH, reinterpret_cast<const float *>(averages + at));
  }
  copy_async_commit();
  copy_async_wait<0>();
  __syncwarp();
}

/* Add a piece's products to the lane's sum, in order. */
static __device__ __forceinline__ float add_piece(const float *piece, unsigned n, float sum)
{
  const float *row = piece + PIECE + warp_lane() * PITCH;
  unsigned k = 0;

#pragma unroll 8
  for (; k + 4 <= n; k += 4) {
    float4 query = *reinterpret_cast<const float4 *>(piece + k);
    sum = fmaf(query.x, row[k], sum);
    sum = fmaf(query.y, row[k + 1], sum);
    sum = fmaf(query.z, row[k + 2], sum);
    sum = fmaf(query.w, row[k + 3], sum);
  }
  for (; k < n; k++)
    sum = fmaf(piece[k], row[k], sum);
  return sum;
}

static __global__ void __launch_bounds__(THREADS) score(struct average_score_input in, struct device_lists lists)
{
  begin_kernel();
  size_t q = blockIdx.y;
  uint32_t n = list_length(lists, q), lane = warp_lane(), warp = threadIdx.x / WARP_LANES;
  const float *query = in.queries + q * in.dim;
  float *piece = shared_memory<float>() + warp * PIECE_FLOATS;

  for (uint32_t first = (blockIdx.x * WARPS + warp) * WARP_LANES; first < n; first += gridDim.x * THREADS) {
    uint32_t i = min(first + lane, n - 1), slot = lists.slots[q * lists.capacity + i];
    float sum = 0.0f;
    for (size_t k = 0; k < in.dim; k += PIECE) {
      unsigned n_numbers = in.dim - k < PIECE ? (unsigned)(in.dim - k) : (unsigned)PIECE;
      copy_piece(in, query, slot, k, n_numbers, piece);
      sum = add_piece(piece, n_numbers, sum);
    }
    if (first + lane < n)
      lists.scores[q * lists.capacity + i] = sum == sum && !is_excluded(in.excluded, q, slot) ? sum : -INFINITY;
  }
}

err_code_t average_score_lists(struct device_stream *stream, const struct average_score_input *input,
                               const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(lists->capacity, THREADS), n_lists = (unsigned)lists->n_lists;

  if (n_lists == 0 || n_blocks == 0)
    return ERR_OK;
  unsigned most = max(BLOCKS_TOTAL / n_lists, (unsigned)BLOCKS_LEAST);
  return launch(stream, dim3(min(n_blocks, most), n_lists), THREADS, WARPS * PIECE_FLOATS * sizeof(float), score,
                *input, *lists);
}
