/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of mol_score.h.
 *
 * A block scores WARP_LANES items of one query at a time, a tile. The tile's arrays are in shared memory, or in the
 * caller's work space if the model is too large for that. The weights are in shared memory too if there is room, and
 * copied once for all tiles of a block. The first two arrays are [..][PITCH], with an item in each column:
 *
 *   numbers   the items' components, a piece of each at a time; later hidden units and gates
 *   logits    all logits
 *   query     the query's components, the same piece, transposed: [piece][P_q padded]
 *
 * Each layer, and the logits of an item's component, are a product of two matrices. A thread computes ITEMS columns by
 * OUTPUTS outputs, because loads limit these kernels: two loads, of four numbers each, make sixteen products.
 */
#include "kernels/cuda/mol_score.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/math_ref.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  ITEMS = 4,
  OUTPUTS = 4,
  PLACES = WARP_LANES / ITEMS, /* threads that share outputs */
  GROUPS = THREADS / PLACES,   /* of threads that share outputs */
  PITCH = WARP_LANES + 4,      /* a multiple of 4 with fewer bank conflicts where columns are written */
  PIECE_ROWS = 256,            /* numbers of an item in one piece */
  COPY_LANES = WARP_LANES / 2, /* lanes that copy from the same row */
  SHARED_BYTES_MAX = 200 * 1024,
  BLOCKS_RESIDENT = 2 /* per multiprocessor, at the usual sizes */
};

/* What is in shared memory. */
enum score_memory { SHARED_NOTHING, SHARED_TILE, SHARED_TILE_AND_WEIGHTS };

static_assert(ITEMS == 4 && OUTPUTS == 4, "float4 has four numbers");

static constexpr unsigned blocks_resident(int memory)
{
  return memory == SHARED_NOTHING ? 1 : BLOCKS_RESIDENT;
}

/* Sizes of a model and of its tiles. */
struct score_sizes {
  size_t n_query, n_item, dim, n_logits, hidden;
  size_t query_stride, hidden_stride, logits_stride; /* outputs, padded */
  size_t piece;                                      /* numbers of each component in one piece */
  size_t n_rows, gates_row; /* rows of score_tile.numbers, and of them the first of the gates */
};

static size_t larger(size_t a, size_t b)
{
  return a > b ? a : b;
}

static struct score_sizes sizes_of(const struct mol_shape *shape)
{
  struct score_sizes s = {};

  s.n_query = shape->n_query_components;
  s.n_item = shape->n_item_components;
  s.dim = shape->component_dim;
  s.n_logits = s.n_query * s.n_item;
  s.hidden = shape->gate_hidden;
  s.query_stride = (s.n_query + OUTPUTS - 1) / OUTPUTS * OUTPUTS;
  s.hidden_stride = mol_score_pad(s.hidden);
  s.logits_stride = mol_score_pad(s.n_logits);
  s.piece = larger(PIECE_ROWS / s.n_item, 1);
  if (s.piece > s.dim)
    s.piece = s.dim;
  s.gates_row = larger(s.hidden, s.n_logits);
  s.n_rows = larger(s.n_item * s.piece, s.gates_row + s.n_logits);
  return s;
}

static __host__ __device__ size_t tile_floats(const struct score_sizes &s)
{
  return (s.n_rows + s.n_logits) * PITCH + s.piece * s.query_stride;
}

static size_t bytes_in(const struct score_sizes &s, enum score_memory memory)
{
  size_t n_weights = (s.n_logits + 1) * s.hidden_stride + (s.hidden + 1) * s.logits_stride;

  return (memory == SHARED_NOTHING ? 0 : tile_floats(s) + (memory == SHARED_TILE ? 0 : n_weights)) * sizeof(float);
}

static enum score_memory memory_of(const struct score_sizes &s)
{
  size_t most = device_shared_bytes(SHARED_BYTES_MAX);

  if (bytes_in(s, SHARED_TILE_AND_WEIGHTS) <= most)
    return SHARED_TILE_AND_WEIGHTS;
  return bytes_in(s, SHARED_TILE) <= most ? SHARED_TILE : SHARED_NOTHING;
}

/* A tile: its items, the query, and the block's arrays. */
struct score_tile {
  int slot; /* of the item in column warp_lane(); columns without an item repeat another */
  size_t q;
  float *numbers, *logits, *query;
  struct mol_gate gate;
  bool has_weights; /* the copy of the weights, if there is one, has been started */
};

static __device__ __forceinline__ const float *row_of(const struct mol_score_input &in, int slot)
{
  return reinterpret_cast<const float *>(in.rows.bytes + (size_t)slot * in.rows.row_bytes);
}

static __device__ __forceinline__ void load_four(float out[4], const float *from)
{
  float4 four = *reinterpret_cast<const float4 *>(from);

  out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
}

static __device__ __forceinline__ void store_four(float *to, const float from[4])
{
  *reinterpret_cast<float4 *>(to) = { from[0], from[1], from[2], from[3] };
}

/* The first of the thread's columns. */
static __device__ __forceinline__ size_t first_column()
{
  return threadIdx.x % PLACES * ITEMS;
}

/* Copies -------------------- */

template <int MEMORY> static __device__ __forceinline__ void copy_number(float *to, const float *from)
{
  if (MEMORY == SHARED_NOTHING)
    *to = *from;
  else
    copy_async_float(to, from);
}

/* End all copies, and make them and all results visible to the block. */
template <int MEMORY> static __device__ __forceinline__ void finish_copies()
{
  if (MEMORY != SHARED_NOTHING) {
    copy_async_commit();
    copy_async_wait<0>();
  }
  __syncthreads();
}

/* Start to copy n floats, a multiple of 4, to shared memory. */
static __device__ __forceinline__ void copy_weights(const float *to, const float *from, size_t n)
{
  for (size_t i = (size_t)threadIdx.x * 4; i < n; i += THREADS * 4)
    copy_async(const_cast<float *>(to) + i, from + i);
}

/* Start to copy the weights, before a block's first tile. */
template <int MEMORY>
static __device__ __forceinline__ void copy_gate(const struct mol_score_input &in, const struct score_sizes &s,
                                                 struct score_tile &tile)
{
  if (MEMORY != SHARED_TILE_AND_WEIGHTS || tile.has_weights)
    return;
  copy_weights(tile.gate.w1, in.gate.w1, s.n_logits * s.hidden_stride);
  copy_weights(tile.gate.b1, in.gate.b1, s.hidden_stride);
  copy_weights(tile.gate.w2, in.gate.w2, s.hidden * s.logits_stride);
  copy_weights(tile.gate.b2, in.gate.b2, s.logits_stride);
  tile.has_weights = true;
}

/* Start to copy the n numbers from `first` on of each item's row to to[n][PITCH]. A warp copies from two rows at a
 * time: from one, it would write to fewer banks at once, and from more, read from more cache lines. */
template <int MEMORY>
static __device__ __forceinline__ void copy_columns(const struct mol_score_input &in, const struct score_tile &tile,
                                                    size_t first, size_t n, float *to)
{
  for (unsigned i = threadIdx.x / COPY_LANES; i < WARP_LANES; i += THREADS / COPY_LANES) {
    const float *from = row_of(in, __shfl_sync(WARP_ALL, tile.slot, (int)i)) + first;
#pragma unroll 4
    for (size_t k = warp_lane() % COPY_LANES; k < n; k += COPY_LANES)
      copy_number<MEMORY>(to + k * PITCH + i, from + k);
  }
}

/* Start to copy a piece, the n numbers from `first` on of each component. If that is all of them, they follow each
 * other. */
template <int MEMORY>
static __device__ void copy_piece(const struct mol_score_input &in, const struct score_sizes &s,
                                  const struct score_tile &tile, size_t first, size_t n)
{
  size_t n_runs = s.piece == s.dim ? 1 : s.n_item, run = s.piece == s.dim ? s.n_item * s.dim : n;
  const float *query = in.components + tile.q * s.n_query * s.dim + first;

  for (size_t m = 0; m < n_runs; m++)
    copy_columns<MEMORY>(in, tile, m * s.dim + first, run, tile.numbers + m * s.piece * PITCH);
  for (size_t i = threadIdx.x / WARP_LANES; i < s.query_stride; i += WARPS) {
    const float *from = query + (i < s.n_query ? i : s.n_query - 1) * s.dim; /* the padding may have any values */
    for (size_t k = warp_lane(); k < n; k += WARP_LANES)
      copy_number<MEMORY>(tile.query + k * s.query_stride + i, from + k);
  }
}

/* Layers -------------------- */

/* Add x[k][j] w[k][i] to sums[i][j], with k ascending. x is [n][PITCH], w is [n][stride]. */
static __device__ __forceinline__ void add_products(const float *x, size_t n, const float *w, size_t stride,
                                                    float sums[OUTPUTS][ITEMS])
{
#pragma unroll 8
  for (size_t k = 0; k < n; k++) {
    float items[ITEMS], weights[OUTPUTS];
    load_four(items, x + k * PITCH);
    load_four(weights, w + k * stride);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) {
#pragma unroll
      for (int j = 0; j < ITEMS; j++)
        sums[i][j] = fmaf(items[j], weights[i], sums[i][j]);
    }
  }
}

/* Compute OUTPUTS outputs of a layer, from the bias on. */
static __device__ __forceinline__ void sum_outputs(const float *x, size_t n, const float *w, size_t stride,
                                                   const float *bias, float sums[OUTPUTS][ITEMS])
{
  float biases[OUTPUTS];

  load_four(biases, bias);
#pragma unroll
  for (int i = 0; i < OUTPUTS; i++)
    sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = biases[i];
  add_products(x, n, w, stride, sums);
}

/* Add a piece, the n numbers from `first` on of each component, to the logits. */
static __device__ void add_piece(const struct mol_score_input &in, const struct score_sizes &s,
                                 const struct score_tile &tile, size_t first, size_t n)
{
  unsigned n_groups = (unsigned)s.query_stride / OUTPUTS;
  float scale = first + n == s.dim ? in.shape.inv_temperature : 1.0f;

  for (unsigned task = threadIdx.x / PLACES; task < s.n_item * n_groups; task += GROUPS) {
    size_t m = task / n_groups, row = task % n_groups * OUTPUTS;
    float *logits = tile.logits + (row * s.n_item + m) * PITCH + first_column();
    float sums[OUTPUTS][ITEMS] = {};
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) {
      if (first > 0 && row + i < s.n_query)
        load_four(sums[i], logits + i * s.n_item * PITCH);
    }
    add_products(tile.numbers + m * s.piece * PITCH + first_column(), n, tile.query + row, s.query_stride, sums);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) {
#pragma unroll
      for (int j = 0; j < ITEMS; j++)
        sums[i][j] *= scale;
      if (row + i < s.n_query)
        store_four(logits + i * s.n_item * PITCH, sums[i]);
    }
  }
}

/* Compute all logits l_p. */
template <int MEMORY>
static __device__ __forceinline__ void find_logits(const struct mol_score_input &in, const struct score_sizes &s,
                                                   const struct score_tile &tile)
{
  for (size_t first = 0; first < s.dim; first += s.piece) {
    size_t n = s.dim - first < s.piece ? s.dim - first : s.piece;
    copy_piece<MEMORY>(in, s, tile, first, n);
    finish_copies<MEMORY>();
    add_piece(in, s, tile, first, n);
    __syncthreads();
  }
}

/* Compute SiLU(W1 l + b1) into the first rows of numbers. Meanwhile the items' gates are copied to the rows of the
 * gates. */
template <int MEMORY>
static __device__ __forceinline__ void find_hidden(const struct mol_score_input &in, const struct score_sizes &s,
                                                   const struct score_tile &tile)
{
  copy_columns<MEMORY>(in, tile, s.n_item * s.dim, s.n_logits, tile.numbers + s.gates_row * PITCH);
  for (size_t row = threadIdx.x / PLACES * OUTPUTS; row < s.hidden; row += GROUPS * OUTPUTS) {
    float sums[OUTPUTS][ITEMS];
    sum_outputs(tile.logits + first_column(), s.n_logits, tile.gate.w1 + row, s.hidden_stride, tile.gate.b1 + row,
                sums);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) {
#pragma unroll
      for (int j = 0; j < ITEMS; j++)
        sums[i][j] = math_silu(sums[i][j]);
      if (row + i < s.hidden)
        store_four(tile.numbers + (row + i) * PITCH + first_column(), sums[i]);
    }
  }
  finish_copies<MEMORY>();
}

/* Replace the items' gates v by SiLU(u v + w). */
static __device__ void find_gates(const struct mol_score_input &in, const struct score_sizes &s,
                                  const struct score_tile &tile)
{
  for (size_t p = threadIdx.x / PLACES * OUTPUTS; p < s.n_logits; p += GROUPS * OUTPUTS) {
    float sums[OUTPUTS][ITEMS], query_gates[OUTPUTS];
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) /* before the products, which take longer than these loads */
      query_gates[i] = p + i < s.n_logits ? in.gates[tile.q * s.n_logits + p + i] : 0.0f;
    sum_outputs(tile.numbers + first_column(), s.hidden, tile.gate.w2 + p, s.logits_stride, tile.gate.b2 + p, sums);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) {
      if (p + i < s.n_logits) {
        float *gates = tile.numbers + (s.gates_row + p + i) * PITCH + first_column(), item_gates[ITEMS];
        load_four(item_gates, gates);
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
          sums[i][j] = math_silu(fmaf(query_gates[i], item_gates[j], sums[i][j]));
        store_four(gates, sums[i]);
      }
    }
  }
  __syncthreads();
}

/* Return sum_p softmax(s)_p l_p, valid in the first warp only: it alone sums, in the processor's order. All warps
 * compute powers, into the rows of the hidden units.
 *
 * The processor's maximum is NaN only if the first number is. Of zeros with different signs it may be the other one,
 * but that changes no power. */
static __device__ __forceinline__ float mix_logits(const struct score_sizes &s, const struct score_tile &tile)
{
  const float *gates = tile.numbers + s.gates_row * PITCH + warp_lane(), *logits = tile.logits + warp_lane();
  float *powers = tile.numbers + warp_lane(), max = gates[0], den = 0.0f, num = 0.0f;

#pragma unroll 8
  for (size_t p = 1; p < s.n_logits; p++)
    max = fmaxf(max, gates[p * PITCH]);
  max = isnan(gates[0]) ? gates[0] : max;
  for (size_t p = threadIdx.x / WARP_LANES; p < s.n_logits; p += WARPS)
    powers[p * PITCH] = math_exp(gates[p * PITCH] - max);
  __syncthreads();
  if (threadIdx.x >= WARP_LANES)
    return 0.0f;
#pragma unroll 8
  for (size_t p = 0; p < s.n_logits; p++) {
    den += powers[p * PITCH];
    num = fmaf(powers[p * PITCH], logits[p * PITCH], num);
  }
  return num / den;
}

/* Return the lane's score, valid in the first warp only. The whole block calls this; it overwrites the tile's arrays.
 */
template <int MEMORY>
static __device__ __forceinline__ float score_items(const struct mol_score_input &in, const struct score_sizes &s,
                                                    struct score_tile &tile)
{
  copy_gate<MEMORY>(in, s, tile);
  find_logits<MEMORY>(in, s, tile);
  find_hidden<MEMORY>(in, s, tile);
  find_gates(in, s, tile);
  return mix_logits(s, tile);
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

template <int MEMORY>
static __global__ void __launch_bounds__(THREADS, blocks_resident(MEMORY))
    score_lists(struct mol_score_input in, struct score_sizes s, struct device_lists lists)
{
  begin_kernel();
  struct score_tile tile = open_tile<MEMORY>(in, s);
  for (tile.q = blockIdx.y; tile.q < lists.n_lists; tile.q += gridDim.y) {
    uint32_t n = list_length(lists, tile.q);
    for (size_t first = (size_t)blockIdx.x * WARP_LANES; first < n; first += (size_t)gridDim.x * WARP_LANES) {
      size_t i = first + warp_lane(), at = tile.q * lists.capacity + (i < n ? i : n - 1);
      tile.slot = (int)lists.slots[at];
      float score = score_items<MEMORY>(in, s, tile);
      if (threadIdx.x < WARP_LANES && i < n)
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
      float score = score_items<MEMORY>(in, s, tile);
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
  dim3 grid = grid_of(input, (lists->capacity + WARP_LANES - 1) / WARP_LANES, lists->n_lists, memory);
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
