/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of mol_score.h.
 *
 * Each layer, and the logits of an item's component, are a product of two matrices. A thread computes ITEMS columns by
 * OUTPUTS outputs, because loads limit these kernels: two loads, of four numbers each, make sixteen products. Where a
 * matrix is too small for that to employ all threads, a thread computes HALF_OUTPUTS.
 *
 * A narrow tile has only NARROW items, one column for each thread, and takes less than half as many instructions. Short
 * lists are scored in narrow tiles, and so are the last entries of lists slightly longer than their blocks' tiles.
 */
#include "kernels/cuda/mol_score.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_score_tile.cuh"
#include "kernels/cuda/silu.cuh"

/* Layers -------------------- */

/* Add x[k][j] w[k][i] to sums[i][j], with k ascending. x is [n][PITCH], w is [n][stride]. */
template <int M, int N>
static __device__ __forceinline__ void add_products(const float *x, unsigned n, const float *w, unsigned stride,
                                                    float sums[M][N])
{
#pragma unroll 8
  for (unsigned k = 0; k < n; k++, x += PITCH, w += stride) {
    float items[N], weights[M];
    load<N>(items, x);
    load<M>(weights, w);
#pragma unroll
    for (int i = 0; i < M; i++) {
#pragma unroll
      for (int j = 0; j < N; j++)
        sums[i][j] = fmaf(items[j], weights[i], sums[i][j]);
    }
  }
}

/* Compute M outputs of a layer, from the bias on. */
template <int M, int N>
static __device__ __forceinline__ void sum_outputs(const float *x, unsigned n, const float *w, unsigned stride,
                                                   const float *bias, float sums[M][N])
{
  float biases[M];

  load<M>(biases, bias);
#pragma unroll
  for (int i = 0; i < M; i++) {
#pragma unroll
    for (int j = 0; j < N; j++)
      sums[i][j] = biases[i];
  }
  add_products<M, N>(x, n, w, stride, sums);
}

/* Add a piece, the n numbers from `first` on of each component, to the logits. */
template <int N>
static __device__ void add_piece(const struct mol_score_input &in, const struct score_sizes &s,
                                 const struct score_tile &tile, unsigned first, unsigned n)
{
  unsigned n_groups = s.query_stride / HALF_OUTPUTS;
  float scale = first + n == s.dim ? in.shape.inv_temperature : 1.0f;

  for (unsigned task = group(); task < s.n_item * n_groups; task += GROUPS) {
    unsigned m = task / n_groups, row = task % n_groups * HALF_OUTPUTS;
    float *logits = tile.logits + (row * s.n_item + m) * PITCH + place() * N;
    float sums[HALF_OUTPUTS][N] = {};
#pragma unroll
    for (unsigned i = 0; i < HALF_OUTPUTS; i++) {
      if (first > 0 && row + i < s.n_query)
        load<N>(sums[i], logits + i * s.n_item * PITCH);
    }
    add_products<HALF_OUTPUTS, N>(tile.numbers + m * s.piece * PITCH + place() * N, n, tile.query + row, s.query_stride,
                                  sums);
#pragma unroll
    for (unsigned i = 0; i < HALF_OUTPUTS; i++) {
#pragma unroll
      for (int j = 0; j < N; j++)
        sums[i][j] *= scale;
      if (row + i < s.n_query)
        store<N>(logits + i * s.n_item * PITCH, sums[i]);
    }
  }
}

/* Compute all logits l_p. Meanwhile the weights are copied, before a block's first tile. */
template <int MEMORY, int N>
static __device__ __forceinline__ void find_logits(const struct mol_score_input &in, const struct score_sizes &s,
                                                   struct score_tile &tile)
{
  for (unsigned first = 0; first < s.dim; first += s.piece) {
    unsigned n = s.dim - first < s.piece ? s.dim - first : s.piece;
    copy_piece<MEMORY, N>(in, s, tile, first, n);
    finish_copies_before<MEMORY>([&] { copy_gate<MEMORY>(in, s, tile); });
    add_piece<N>(in, s, tile, first, n);
    finish_copies<MEMORY>();
  }
}

/* Compute SiLU(W1 l + b1) into the first rows of numbers. Meanwhile the items' gates are copied to the rows of the
 * gates. */
template <int MEMORY, int N>
static __device__ __forceinline__ void find_hidden(const struct mol_score_input &in, const struct score_sizes &s,
                                                   const struct score_tile &tile)
{
  copy_columns<MEMORY, N>(in, tile, s.n_item * s.dim, s.n_logits, tile.numbers + s.gates_row * PITCH);
  for (unsigned row = group() * OUTPUTS; row < s.hidden; row += GROUPS * OUTPUTS) {
    float sums[OUTPUTS][N];
    sum_outputs<OUTPUTS, N>(tile.logits + place() * N, s.n_logits, tile.gate.w1 + row, s.hidden_stride,
                            tile.gate.b1 + row, sums);
    silu_all<OUTPUTS * N>(&sums[0][0]);
#pragma unroll
    for (unsigned i = 0; i < OUTPUTS; i++) {
      if (row + i < s.hidden)
        store<N>(tile.numbers + (row + i) * PITCH + place() * N, sums[i]);
    }
  }
  finish_copies<MEMORY>();
}

/* Replace the items' gates v by SiLU(u v + w). */
template <int N>
static __device__ void find_gates(const struct mol_score_input &in, const struct score_sizes &s,
                                  const struct score_tile &tile)
{
  for (unsigned p = group() * HALF_OUTPUTS; p < s.n_logits; p += GROUPS * HALF_OUTPUTS) {
    float sums[HALF_OUTPUTS][N], query_gates[HALF_OUTPUTS];
#pragma unroll
    for (unsigned i = 0; i < HALF_OUTPUTS; i++) /* before the products, which take longer than these loads */
      query_gates[i] = p + i < s.n_logits ? in.gates[tile.q * s.n_logits + p + i] : 0.0f;
    sum_outputs<HALF_OUTPUTS, N>(tile.numbers + place() * N, s.hidden, tile.gate.w2 + p, s.logits_stride,
                                 tile.gate.b2 + p, sums);
    float *gates = tile.numbers + (s.gates_row + p) * PITCH + place() * N;
#pragma unroll
    for (unsigned i = 0; i < HALF_OUTPUTS; i++) {
      float item_gates[N] = {};
      if (p + i < s.n_logits)
        load<N>(item_gates, gates + i * PITCH);
#pragma unroll
      for (int j = 0; j < N; j++)
        sums[i][j] = fmaf(query_gates[i], item_gates[j], sums[i][j]);
    }
    silu_all<HALF_OUTPUTS * N>(&sums[0][0]);
#pragma unroll
    for (unsigned i = 0; i < HALF_OUTPUTS; i++) {
      if (p + i < s.n_logits)
        store<N>(gates + i * PITCH, sums[i]);
    }
  }
  __syncthreads();
}

/* Return the largest gate of the thread's column, threadIdx.x % (N * PLACES). The block's warps share the work, and
 * write what they find to maxima[WARPS][PITCH].
 *
 * The processor's maximum is NaN only if the first number is. Of zeros with different signs it may be the other one,
 * but that changes no power. */
template <int N>
static __device__ __forceinline__ float max_gate(const struct score_sizes &s, const float *gates, float *maxima)
{
  constexpr unsigned COLUMNS = N * PLACES;
  unsigned column = threadIdx.x % COLUMNS;
  float max = -INFINITY;

#pragma unroll 4
  for (unsigned p = threadIdx.x / COLUMNS; p < s.n_logits; p += THREADS / COLUMNS)
    max = fmaxf(max, gates[p * PITCH + column]);
#pragma unroll
  for (int step = COLUMNS; step < WARP_LANES; step *= 2)
    max = fmaxf(max, __shfl_xor_sync(WARP_ALL, max, step));
  if (warp_lane() < COLUMNS)
    maxima[threadIdx.x / WARP_LANES * PITCH + column] = max;
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < WARPS; i++)
    max = fmaxf(max, maxima[i * PITCH + column]);
  return isnan(gates[column]) ? gates[column] : max;
}

/* Return sum_p softmax(s)_p l_p of the thread's column, valid in the first N * PLACES threads only: they alone sum, in
 * the processor's order. All warps compute powers, into the rows of the hidden units. */
template <int N>
static __device__ __forceinline__ float mix_logits(const struct score_sizes &s, const struct score_tile &tile)
{
  constexpr unsigned COLUMNS = N * PLACES;
  unsigned column = threadIdx.x % COLUMNS;
  const float *gates = tile.numbers + s.gates_row * PITCH, *logits = tile.logits + column;
  float *powers = tile.numbers + column, den = 0.0f, num = 0.0f;
  float max = max_gate<N>(s, gates, tile.numbers + s.n_logits * PITCH);

#pragma unroll 2
  for (unsigned p = threadIdx.x / COLUMNS; p < s.n_logits; p += THREADS / COLUMNS)
    powers[p * PITCH] = math_exp(gates[p * PITCH + column] - max);
  __syncthreads();
  if (threadIdx.x >= COLUMNS)
    return 0.0f;
#pragma unroll 16
  for (unsigned p = 0; p < s.n_logits; p++) {
    den += powers[p * PITCH];
    num = fmaf(powers[p * PITCH], logits[p * PITCH], num);
  }
  return num / den;
}

/* Return the score of column threadIdx.x, valid in the first N * PLACES threads only. The whole block calls this; it
 * overwrites the tile's arrays. N is ITEMS, or 1 for a narrow tile. */
template <int MEMORY, int N>
static __device__ __forceinline__ float score_items(const struct mol_score_input &in, const struct score_sizes &s,
                                                    struct score_tile &tile)
{
  find_logits<MEMORY, N>(in, s, tile);
  find_hidden<MEMORY, N>(in, s, tile);
  find_gates<N>(in, s, tile);
  return mix_logits<N>(s, tile);
}

template <int MEMORY>
static __device__ __forceinline__ struct score_tile open_tile(const struct mol_score_input &in,
                                                              const struct score_sizes &s)
{
  size_t block = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
  float *memory = MEMORY == SHARED_NOTHING ? in.work + block * tile_floats(s) : shared_memory<float>();
  struct score_tile tile = { 0, 0, memory, memory + s.n_rows * PITCH, NULL, in.gate, false };

  tile.query = tile.logits + s.n_logits * PITCH;
  if (MEMORY == SHARED_TILE_AND_WEIGHTS) {
    tile.gate.w1 = memory + tile_floats(s);
    tile.gate.b1 = tile.gate.w1 + s.n_logits * s.hidden_stride;
    tile.gate.w2 = tile.gate.b1 + s.hidden_stride;
    tile.gate.b2 = tile.gate.w2 + s.hidden * s.logits_stride;
  }
  return tile;
}

/* A block's share of a list: a tile from `first` on, then one every `step` entries. None goes beyond `end`. */
struct share {
  size_t first, end, step;
};

/* Return the block's share of a list of n entries. If equal shares end with a narrow tile, each block gets one: the
 * alternative is another full tile for some blocks, for which all others wait. */
static __device__ __forceinline__ struct share share_of(size_t n)
{
  size_t each = (n + gridDim.x - 1) / gridDim.x;

  if (each < NARROW)
    each = NARROW;
  if ((each - 1) % WARP_LANES >= NARROW)
    return { (size_t)blockIdx.x * WARP_LANES, n, (size_t)gridDim.x * WARP_LANES };
  size_t first = blockIdx.x * each;
  return { first, first + each < n ? first + each : n, WARP_LANES };
}

template <int MEMORY>
static __global__ void __launch_bounds__(THREADS, blocks_resident(MEMORY))
    score_lists(struct mol_score_input in, struct score_sizes s, struct device_lists lists)
{
  begin_kernel();
  struct score_tile tile = open_tile<MEMORY>(in, s);
  for (tile.q = blockIdx.y; tile.q < lists.n_lists; tile.q += gridDim.y) {
    struct share share = share_of(list_length(lists, tile.q));
    for (size_t first = share.first; first < share.end; first += share.step) {
      size_t i = first + warp_lane(), at = tile.q * lists.capacity + (i < share.end ? i : share.end - 1);
      tile.slot = (int)lists.slots[at];
      float score =
          share.end - first <= NARROW ? score_items<MEMORY, 1>(in, s, tile) : score_items<MEMORY, ITEMS>(in, s, tile);
      if (threadIdx.x < WARP_LANES && i < share.end)
        lists.scores[at] = score;
      __syncthreads();
    }
  }
}

template <int MEMORY>
static __global__ void __launch_bounds__(THREADS, blocks_resident(MEMORY))
    score_append(struct mol_score_input in, struct score_sizes s, size_t begin, size_t end, const float *floors,
                 struct device_lists lists)
{
  begin_kernel();
  struct score_tile tile = open_tile<MEMORY>(in, s);
  for (tile.q = blockIdx.y; tile.q < in.n_queries; tile.q += gridDim.y) {
    for (size_t first = begin + (size_t)blockIdx.x * WARP_LANES; first < end; first += (size_t)gridDim.x * WARP_LANES) {
      size_t slot = first + warp_lane();
      bool is_in = slot < end && in.rows.present[slot] && is_admitted(in.admitted, tile.q, (uint32_t)slot);
      unsigned all = __ballot_sync(WARP_ALL, is_in);
      if (all == 0)
        continue; /* the same in all warps */
      tile.slot = (int)(is_in ? slot : first + (size_t)__ffs((int)all) - 1);
      float score = score_items<MEMORY, ITEMS>(in, s, tile);
      if (threadIdx.x < WARP_LANES)
        append_warp(lists, tile.q, is_in && score >= floors[tile.q], (uint32_t)slot, score);
      __syncthreads();
    }
  }
}

/* The grid: x over tiles of one query, y over queries. */
static dim3 grid_of(const struct mol_score_input *in, size_t n_tiles, size_t n_queries, enum score_memory memory)
{
  size_t most = (size_t)in->n_blocks * blocks_resident(memory);
  size_t y = n_queries < most ? n_queries : most, x = most / y;

  return dim3((unsigned)(n_tiles < x ? n_tiles : x), (unsigned)y);
}

size_t mol_score_work_bytes(const struct mol_shape *shape, unsigned n_blocks)
{
  struct score_sizes s = sizes_of(shape);

  return memory_of(s) == SHARED_NOTHING ? tile_floats(s) * sizeof(float) * n_blocks : 0;
}

err_code_t mol_score_lists(struct device_stream *stream, const struct mol_score_input *input,
                           const struct device_lists *lists)
{
  struct score_sizes s = sizes_of(&input->shape);
  enum score_memory memory = memory_of(s);

  if (lists->n_lists == 0 || lists->capacity == 0)
    return ERR_OK;
  dim3 grid = grid_of(input, (lists->capacity + NARROW - 1) / NARROW, lists->n_lists, memory);
  return launch(stream, grid, THREADS, bytes_in(s, memory),
                memory == SHARED_TILE_AND_WEIGHTS ? score_lists<SHARED_TILE_AND_WEIGHTS>
                : memory == SHARED_TILE           ? score_lists<SHARED_TILE>
                                                  : score_lists<SHARED_NOTHING>,
                *input, s, *lists);
}

err_code_t mol_score_append(struct device_stream *stream, const struct mol_score_input *input, size_t first, size_t n,
                            const float *floors, const struct device_lists *lists)
{
  struct score_sizes s = sizes_of(&input->shape);
  enum score_memory memory = memory_of(s);

  if (n == 0 || input->n_queries == 0)
    return ERR_OK;
  dim3 grid = grid_of(input, (n + WARP_LANES - 1) / WARP_LANES, input->n_queries, memory);
  return launch(stream, grid, THREADS, bytes_in(s, memory),
                memory == SHARED_TILE_AND_WEIGHTS ? score_append<SHARED_TILE_AND_WEIGHTS>
                : memory == SHARED_TILE           ? score_append<SHARED_TILE>
                                                  : score_append<SHARED_NOTHING>,
                *input, s, first, first + n, floors, *lists);
}
