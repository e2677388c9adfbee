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
 * OUTPUTS outputs, because loads limit these kernels: two loads, of four numbers each, make sixteen products. Where a
 * matrix is too small for that to employ all threads, a thread computes HALF_OUTPUTS.
 *
 * A narrow tile has only NARROW items, one column for each thread, and takes less than half as many instructions. Short
 * lists are scored in narrow tiles, and so are the last entries of lists slightly longer than their blocks' tiles.
 */
#include "kernels/cuda/mol_score.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/silu.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  ITEMS = 4,
  OUTPUTS = 4,
  HALF_OUTPUTS = 2,
  PLACES = WARP_LANES / ITEMS, /* threads that share outputs */
  NARROW = PLACES,             /* columns of a narrow tile */
  GROUPS = THREADS / PLACES,   /* of threads that share outputs */
  PITCH = WARP_LANES + 4,      /* a multiple of 4 with fewer bank conflicts where columns are written */
  PIECE_ROWS = 256,            /* numbers of an item in one piece */
  COPIES = 4,                  /* of one thread at a time */
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
  unsigned n_query, n_item, dim, n_logits, hidden;
  unsigned query_stride, hidden_stride, logits_stride; /* outputs, padded */
  unsigned piece;                                      /* numbers of each component in one piece */
  unsigned n_rows, gates_row; /* rows of score_tile.numbers, and of them the first of the gates */
};

static unsigned larger(unsigned a, unsigned b)
{
  return a > b ? a : b;
}

static struct score_sizes sizes_of(const struct mol_shape *shape)
{
  struct score_sizes s = {};

  s.n_query = (unsigned)shape->n_query_components;
  s.n_item = (unsigned)shape->n_item_components;
  s.dim = (unsigned)shape->component_dim;
  s.n_logits = s.n_query * s.n_item;
  s.hidden = (unsigned)shape->gate_hidden;
  s.query_stride = (s.n_query + OUTPUTS - 1) / OUTPUTS * OUTPUTS;
  s.hidden_stride = (unsigned)mol_score_pad(s.hidden);
  s.logits_stride = (unsigned)mol_score_pad(s.n_logits);
  s.piece = larger(PIECE_ROWS / s.n_item, 1);
  if (s.piece > s.dim)
    s.piece = s.dim;
  s.gates_row = larger(s.hidden, s.n_logits + WARPS); /* mix_logits() has WARPS rows after the powers */
  s.n_rows = larger(s.n_item * s.piece, s.gates_row + s.n_logits);
  return s;
}

static __host__ __device__ size_t tile_floats(const struct score_sizes &s)
{
  return (size_t)(s.n_rows + s.n_logits) * PITCH + (size_t)s.piece * s.query_stride;
}

static size_t bytes_in(const struct score_sizes &s, enum score_memory memory)
{
  size_t n_weights = (size_t)(s.n_logits + 1) * s.hidden_stride + (size_t)(s.hidden + 1) * s.logits_stride;

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

/* Load N numbers at once; `from` is aligned to all of them. */
template <int N> static __device__ __forceinline__ void load(float out[N], const float *from)
{
  static_assert(N == 1 || N == 2 || N == 4, "float, float2 and float4");
  if constexpr (N == 4) {
    float4 four = *reinterpret_cast<const float4 *>(from);
    out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
  } else if constexpr (N == 2) {
    float2 two = *reinterpret_cast<const float2 *>(from);
    out[0] = two.x, out[1] = two.y;
  } else {
    out[0] = *from;
  }
}

/* Store a thread's columns at once. */
template <int N> static __device__ __forceinline__ void store(float *to, const float from[N])
{
  static_assert(N == 1 || N == ITEMS, "the columns of a thread");
  if constexpr (N == ITEMS)
    *reinterpret_cast<float4 *>(to) = { from[0], from[1], from[2], from[3] };
  else
    *to = from[0];
}

/* The thread's place among those that share outputs, and the number of its group. Lanes 2 i and 2 i + 1 have the same
 * place, and lanes i and i + 2 the same group: only then do loads of 16 bytes from shared memory, of columns and of
 * weights, serve half a warp in one cycle instead of a quarter. */
static __device__ __forceinline__ unsigned place()
{
  return threadIdx.x / 2 % PLACES;
}

static __device__ __forceinline__ unsigned group()
{
  return threadIdx.x / (2 * PLACES) * 2 + threadIdx.x % 2;
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

/* The same, but with other copies that `start` starts and that need not have ended. */
template <int MEMORY, class Start> static __device__ __forceinline__ void finish_copies_before(Start start)
{
  if (MEMORY != SHARED_NOTHING) {
    copy_async_commit();
    start();
    copy_async_commit();
    copy_async_wait<1>();
  }
  __syncthreads();
}

/* Start to copy n floats, a multiple of 4, to shared memory. */
static __device__ __forceinline__ void copy_weights(const float *to, const float *from, unsigned n)
{
  for (unsigned i = threadIdx.x * 4; i < n; i += THREADS * 4)
    copy_async(const_cast<float *>(to) + i, from + i);
}

/* Start to copy the weights, if that has not been done. */
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

/* Start to copy the n numbers from `first` on of each item's row to to[n][PITCH]. Of a tile with N columns for each
 * thread, a warp copies from N / 2 rows at a time: from fewer, it would write to fewer banks at once, and from more,
 * read from more cache lines. */
template <int MEMORY, int N>
static __device__ __forceinline__ void copy_columns(const struct mol_score_input &in, const struct score_tile &tile,
                                                    unsigned first, unsigned n, float *to)
{
  constexpr unsigned LANES = N == 1 ? WARP_LANES : WARP_LANES / 2;

  for (unsigned i = threadIdx.x / LANES; i < N * PLACES; i += THREADS / LANES) {
    unsigned k = threadIdx.x % LANES;
    const float *from = row_of(in, __shfl_sync(WARP_ALL, tile.slot, (int)i)) + first + k;
    float *at = to + k * PITCH + i;
    for (; k + (COPIES - 1) * LANES < n; k += COPIES * LANES) {
#pragma unroll
      for (unsigned c = 0; c < COPIES; c++)
        copy_number<MEMORY>(at + c * LANES * PITCH, from + c * LANES);
      at += COPIES * LANES * PITCH, from += COPIES * LANES;
    }
#pragma unroll 1
    for (; k < n; k += LANES, at += LANES * PITCH, from += LANES)
      copy_number<MEMORY>(at, from);
  }
}

/* Start to copy a piece, the n numbers from `first` on of each component. If that is all of them, they follow each
 * other. */
template <int MEMORY, int N>
static __device__ void copy_piece(const struct mol_score_input &in, const struct score_sizes &s,
                                  const struct score_tile &tile, unsigned first, unsigned n)
{
  unsigned n_runs = s.piece == s.dim ? 1 : s.n_item, run = s.piece == s.dim ? s.n_item * s.dim : n;
  const float *query = in.components + tile.q * s.n_query * s.dim + first;

  for (unsigned m = 0; m < n_runs; m++)
    copy_columns<MEMORY, N>(in, tile, m * s.dim + first, run, tile.numbers + m * s.piece * PITCH);
  for (unsigned i = threadIdx.x / WARP_LANES; i < s.query_stride; i += WARPS) {
    const float *from = query + (i < s.n_query ? i : s.n_query - 1) * s.dim; /* the padding may have any values */
#pragma unroll 1
    for (unsigned k = warp_lane(); k < n; k += WARP_LANES)
      copy_number<MEMORY>(tile.query + k * s.query_stride + i, from + k);
  }
}

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
