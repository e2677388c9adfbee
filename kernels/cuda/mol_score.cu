/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of mol_score.h.
 *
 * A block scores WARP_LANES items of one query at a time. Lane i of every warp works on item i. A tile's arrays are
 * [..][WARP_LANES], as on the processor. They are in shared memory, or in the caller's work space if the model is too
 * large for that.
 *
 *   numbers   the items' components, transposed, one piece after another; later hidden units and gates
 *   logits    all logits
 *
 * A warp computes several outputs of a layer at a time for its 32 items. It reads each input once for all outputs, and
 * all lanes share the weights.
 */
#include "kernels/cuda/mol_score.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/math_ref.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  PITCH = WARP_LANES + 1, /* of a transposed piece: no bank conflicts by rows or by columns */
  PIECE_LEAST = 128,      /* numbers of a row in one piece */
  HIDDEN_OUTPUTS = 16,
  GATE_OUTPUTS = 8,
  SHARED_BYTES_MAX = 200 * 1024,
  BLOCKS_RESIDENT = 4, /* per multiprocessor, at the usual sizes */
  SLOT_NONE = -1
};

/* Sizes of a model and of its tiles. */
struct score_sizes {
  size_t n_query, n_item, dim, n_logits, hidden;
  size_t n_numbers, piece; /* floats in score_tile.numbers; numbers of a row in one piece */
  size_t hidden_stride, logits_stride;
};

static struct score_sizes sizes_of(const struct mol_shape *shape)
{
  struct score_sizes s = {};

  s.n_query = shape->n_query_components;
  s.n_item = shape->n_item_components;
  s.dim = shape->component_dim;
  s.n_logits = s.n_query * s.n_item;
  s.hidden = shape->gate_hidden;
  s.n_numbers = (s.hidden + s.n_logits) * WARP_LANES;
  if (s.n_numbers < PIECE_LEAST * PITCH)
    s.n_numbers = PIECE_LEAST * PITCH;
  s.piece = s.n_numbers / PITCH;
  s.hidden_stride = mol_score_pad(s.hidden);
  s.logits_stride = mol_score_pad(s.n_logits);
  return s;
}

static size_t tile_bytes(const struct score_sizes *s)
{
  return (s->n_numbers + s->n_logits * WARP_LANES) * sizeof(float);
}

/* A tile: the lane's item, the query, and the block's arrays. */
struct score_tile {
  int slot; /* the lane's item; SLOT_NONE: the lane has none */
  const float *query, *query_gate;
  float *numbers, *logits;
};

static __device__ __forceinline__ const float *row_of(const struct mol_score_input &in, int slot)
{
  return reinterpret_cast<const float *>(in.rows.bytes + (size_t)slot * in.rows.row_bytes);
}

/* Load numbers[k][i] = number first + k of item i's row, for k < n. */
static __device__ void load_piece(const struct mol_score_input &in, const struct score_tile &tile, size_t first,
                                  size_t n)
{
  for (unsigned i = threadIdx.x / WARP_LANES; i < WARP_LANES; i += WARPS) {
    int slot = __shfl_sync(WARP_ALL, tile.slot, (int)i);
    for (size_t k = warp_lane(); k < n; k += WARP_LANES)
      tile.numbers[k * PITCH + i] = slot == SLOT_NONE ? 0.0f : row_of(in, slot)[first + k];
  }
}

/* Add a piece, numbers first to last - 1, to the logits that it contributes to. */
static __device__ void add_piece(const struct mol_score_input &in, const struct score_sizes &s,
                                 const struct score_tile &tile, size_t first, size_t last)
{
  size_t m_first = first / s.dim, n_m = (last - 1) / s.dim - m_first + 1;

  for (size_t i = threadIdx.x / WARP_LANES; i < n_m * s.n_query; i += WARPS) {
    size_t n = i / n_m, m = m_first + i % n_m, end = (m + 1) * s.dim;
    size_t from = m * s.dim > first ? m * s.dim : first, to = end < last ? end : last;
    float *logit = tile.logits + (n * s.n_item + m) * WARP_LANES + warp_lane();
    const float *query = tile.query + n * s.dim + (from - m * s.dim);
    const float *numbers = tile.numbers + (from - first) * PITCH + warp_lane();
    float sum = from == m * s.dim ? 0.0f : *logit;
#pragma unroll 8
    for (size_t k = 0; k < to - from; k++)
      sum = fmaf(query[k], numbers[k * PITCH], sum);
    *logit = to == end ? sum * in.shape.inv_temperature : sum;
  }
}

/* Compute all logits l_p. */
static __device__ void find_logits(const struct mol_score_input &in, const struct score_sizes &s,
                                   const struct score_tile &tile)
{
  size_t n = s.n_item * s.dim;

  for (size_t first = 0; first < n; first += s.piece) {
    size_t last = first + s.piece < n ? first + s.piece : n;
    load_piece(in, tile, first, last - first);
    __syncthreads();
    add_piece(in, s, tile, first, last);
    __syncthreads();
  }
}

/* Compute N outputs: sums[i] = bias[i] + the sum of x[k] w[k][i], with k ascending. x is the lane's column of
 * [n][WARP_LANES]. */
template <int N>
static __device__ __forceinline__ void sum_outputs(const float *x, size_t n, const float *__restrict__ w, size_t stride,
                                                   const float *__restrict__ bias, float sums[N])
{
#pragma unroll
  for (int i = 0; i < N; i++)
    sums[i] = bias[i];
#pragma unroll 2
  for (size_t k = 0; k < n; k++) {
    float one = x[k * WARP_LANES];
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      float4 four = *reinterpret_cast<const float4 *>(w + k * stride + i);
      sums[i] = fmaf(one, four.x, sums[i]);
      sums[i + 1] = fmaf(one, four.y, sums[i + 1]);
      sums[i + 2] = fmaf(one, four.z, sums[i + 2]);
      sums[i + 3] = fmaf(one, four.w, sums[i + 3]);
    }
  }
}

/* Compute SiLU(W1 l + b1) into the first rows of numbers. */
static __device__ void find_hidden(const struct mol_score_input &in, const struct score_sizes &s,
                                   const struct score_tile &tile)
{
  for (size_t j = threadIdx.x / WARP_LANES * HIDDEN_OUTPUTS; j < s.hidden; j += WARPS * HIDDEN_OUTPUTS) {
    float sums[HIDDEN_OUTPUTS];
    sum_outputs<HIDDEN_OUTPUTS>(tile.logits + warp_lane(), s.n_logits, in.gate.w1 + j, s.hidden_stride, in.gate.b1 + j,
                                sums);
#pragma unroll
    for (int i = 0; i < HIDDEN_OUTPUTS; i++) {
      if (j + i < s.hidden)
        tile.numbers[(j + i) * WARP_LANES + warp_lane()] = math_silu(sums[i]);
    }
  }
  __syncthreads();
}

/* Compute SiLU(u v + w) into the rows of numbers after the hidden units. */
static __device__ void find_gates(const struct mol_score_input &in, const struct score_sizes &s,
                                  const struct score_tile &tile)
{
  const float *item_gate = tile.slot == SLOT_NONE ? NULL : row_of(in, tile.slot) + s.n_item * s.dim;

  for (size_t p = threadIdx.x / WARP_LANES * GATE_OUTPUTS; p < s.n_logits; p += WARPS * GATE_OUTPUTS) {
    float sums[GATE_OUTPUTS];
    sum_outputs<GATE_OUTPUTS>(tile.numbers + warp_lane(), s.hidden, in.gate.w2 + p, s.logits_stride, in.gate.b2 + p,
                              sums);
#pragma unroll
    for (int i = 0; i < GATE_OUTPUTS; i++) {
      if (p + i < s.n_logits) {
        float gate = item_gate ? item_gate[p + i] : 0.0f;
        tile.numbers[(s.hidden + p + i) * WARP_LANES + warp_lane()] =
            math_silu(fmaf(tile.query_gate[p + i], gate, sums[i]));
      }
    }
  }
  __syncthreads();
}

/* Return sum_p softmax(s)_p l_p. One warp. Comparisons are written as on the processor, because NaN depends on them. */
static __device__ float mix_logits(const struct score_sizes &s, const struct score_tile &tile)
{
  const float *gates = tile.numbers + s.hidden * WARP_LANES + warp_lane(), *logits = tile.logits + warp_lane();
  float max = gates[0], den = 0.0f, num = 0.0f;

  for (size_t p = 1; p < s.n_logits; p++)
    max = gates[p * WARP_LANES] > max ? gates[p * WARP_LANES] : max;
#pragma unroll 4
  for (size_t p = 0; p < s.n_logits; p++) {
    float e = math_exp(gates[p * WARP_LANES] - max);
    den += e;
    num = fmaf(e, logits[p * WARP_LANES], num);
  }
  return num / den;
}

/* Return the lane's score, valid in the first warp only. The whole block calls this; it overwrites the tile's arrays.
 */
static __device__ float score_items(const struct mol_score_input &in, const struct score_sizes &s,
                                    const struct score_tile &tile)
{
  find_logits(in, s, tile);
  find_hidden(in, s, tile);
  find_gates(in, s, tile);
  return threadIdx.x < WARP_LANES ? mix_logits(s, tile) : 0.0f;
}

template <bool IS_SHARED>
static __device__ struct score_tile open_tile(const struct mol_score_input &in, const struct score_sizes &s, size_t q)
{
  struct score_tile tile = { SLOT_NONE, in.components + q * s.n_query * s.dim, in.gates + q * s.n_logits, NULL, NULL };
  size_t n_floats = s.n_numbers + s.n_logits * WARP_LANES;
  size_t block = (size_t)blockIdx.y * gridDim.x + blockIdx.x;

  tile.numbers = IS_SHARED ? shared_memory<float>() : in.work + block * n_floats;
  tile.logits = tile.numbers + s.n_numbers;
  return tile;
}

template <bool IS_SHARED>
static __global__ void __launch_bounds__(THREADS, BLOCKS_RESIDENT)
    score_lists(struct mol_score_input in, struct score_sizes s, struct device_lists lists)
{
  begin_kernel();
  for (size_t q = blockIdx.y; q < lists.n_lists; q += gridDim.y) {
    struct score_tile tile = open_tile<IS_SHARED>(in, s, q);
    uint32_t n = list_length(lists, q);
    for (size_t first = (size_t)blockIdx.x * WARP_LANES; first < n; first += (size_t)gridDim.x * WARP_LANES) {
      size_t i = first + warp_lane();
      tile.slot = i < n ? (int)lists.slots[q * lists.capacity + i] : SLOT_NONE;
      float score = score_items(in, s, tile);
      if (threadIdx.x < WARP_LANES && i < n)
        lists.scores[q * lists.capacity + i] = score;
      __syncthreads();
    }
  }
}

template <bool IS_SHARED>
static __global__ void __launch_bounds__(THREADS, BLOCKS_RESIDENT)
    score_append(struct mol_score_input in, struct score_sizes s, size_t begin, size_t end, const float *floors,
                 struct device_lists lists)
{
  begin_kernel();
  for (size_t q = blockIdx.y; q < in.n_queries; q += gridDim.y) {
    struct score_tile tile = open_tile<IS_SHARED>(in, s, q);
    for (size_t first = begin + (size_t)blockIdx.x * WARP_LANES; first < end; first += (size_t)gridDim.x * WARP_LANES) {
      size_t slot = first + warp_lane();
      bool is_in = slot < end && in.rows.present[slot] && is_admitted(in.admitted, q, (uint32_t)slot);
      tile.slot = is_in ? (int)slot : SLOT_NONE;
      if (!__any_sync(WARP_ALL, tile.slot != SLOT_NONE))
        continue; /* the same in all warps */
      float score = score_items(in, s, tile);
      if (threadIdx.x < WARP_LANES)
        append_warp(lists, q, tile.slot != SLOT_NONE && score >= floors[q], (uint32_t)slot, score);
      __syncthreads();
    }
  }
}

/* The grid: x over tiles of one query, y over queries. */
static dim3 grid_of(const struct mol_score_input *in, size_t n_tiles, size_t n_queries, bool is_shared)
{
  size_t most = (size_t)in->n_blocks * (is_shared ? BLOCKS_RESIDENT : 1);
  size_t y = n_queries < most ? n_queries : most, x = most / y;

  return dim3((unsigned)(n_tiles < x ? n_tiles : x), (unsigned)y);
}

size_t mol_score_work_bytes(const struct mol_shape *shape, unsigned n_blocks)
{
  struct score_sizes s = sizes_of(shape);

  return tile_bytes(&s) <= device_shared_bytes(SHARED_BYTES_MAX) ? 0 : tile_bytes(&s) * n_blocks;
}

err_code_t mol_score_lists(struct device_stream *stream, const struct mol_score_input *input,
                           const struct device_lists *lists)
{
  struct score_sizes s = sizes_of(&input->shape);
  bool is_shared = tile_bytes(&s) <= device_shared_bytes(SHARED_BYTES_MAX);

  if (lists->n_lists == 0 || lists->capacity == 0)
    return ERR_OK;
  dim3 grid = grid_of(input, (lists->capacity + WARP_LANES - 1) / WARP_LANES, lists->n_lists, is_shared);
  return launch(stream, grid, THREADS, is_shared ? tile_bytes(&s) : 0,
                is_shared ? score_lists<true> : score_lists<false>, *input, s, *lists);
}

err_code_t mol_score_append(struct device_stream *stream, const struct mol_score_input *input, size_t first, size_t n,
                            const float *floors, const struct device_lists *lists)
{
  struct score_sizes s = sizes_of(&input->shape);
  bool is_shared = tile_bytes(&s) <= device_shared_bytes(SHARED_BYTES_MAX);

  if (n == 0 || input->n_queries == 0)
    return ERR_OK;
  dim3 grid = grid_of(input, (n + WARP_LANES - 1) / WARP_LANES, input->n_queries, is_shared);
  return launch(stream, grid, THREADS, is_shared ? tile_bytes(&s) : 0,
                is_shared ? score_append<true> : score_append<false>, *input, s, first, first + n, floors, *lists);
}
