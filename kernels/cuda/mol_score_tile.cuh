/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of mol_score.cu: their sizes and arrays, and the copies of items, queries and weights to them.
 *
 * A block scores WARP_LANES items of one query at a time, a tile. The tile's arrays are in shared memory, or in the
 * caller's work space if the model is too large for that. The weights are in shared memory too if there is room, and
 * copied once for all tiles of a block. The first two arrays are [..][PITCH], with an item in each column:
 *
 *   numbers   the items' components, a piece of each at a time; later hidden units and gates
 *   logits    all logits
 *   query     the query's components, the same piece, transposed: [piece][P_q padded]
 */
#ifndef KERNELS_CUDA_MOL_SCORE_TILE_CUH
#define KERNELS_CUDA_MOL_SCORE_TILE_CUH

#include "kernels/cuda/mol_score.h"
#include "kernels/cuda/warp.cuh"

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

#endif
