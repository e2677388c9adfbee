/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of queries (pq_packed.h), and the tables that the scans of pq_packed.cu read them from.
 *
 * A table has the levels of Q queries. Each code has a row of 128 bytes, with the pieces of several splits or several
 * copies of them; a piece has a split's levels of all Q queries.
 *
 * Few queries: each block of find_maxima() makes their table for itself. More: a kernel makes them for all blocks.
 */
#ifndef KERNELS_CUDA_PQ_PACKED_LEVELS_CUH
#define KERNELS_CUDA_PQ_PACKED_LEVELS_CUH

#include "kernels/cuda/pq_packed.h"
#include "kernels/cuda/warp.cuh"

enum {
  THREADS = 1024, /* of a block that scans */
  WARPS = THREADS / WARP_LANES,
  SUBITEMS = 256,
  SPLITS = PQ_PACKED_SPLITS,
  ROW_BYTES = 128, /* all banks */
  ROWS_BYTES = SUBITEMS * ROW_BYTES,
  FEW_QUERIES = 2,
  SCALE_WARPS = SUBITEMS / WARP_LANES,
  LEVELS = 32758
};

#define SCORE_MAX 0x1p120f

/* The layout of the tables of Q queries. */
template <int Q> struct layout {
  enum {
    WORDS = Q < 8 ? Q / 2 : 4,                  /* of a lane, two queries each */
    LANES = Q / (2 * WORDS),                    /* of an item */
    ITEMS = WARP_LANES / LANES,                 /* of a warp */
    PIECE = 2 * Q,                              /* bytes: the levels of Q queries for one sub-item */
    PIECES = ROW_BYTES / PIECE,                 /* of a row: as many items are read at the same time */
    SPREAD = PIECES < SPLITS ? PIECES : SPLITS, /* splits of a row */
    COPIES = PIECES / SPREAD,
    TABLE_BYTES = SPLITS / SPREAD * ROWS_BYTES
  };
};

/* Add up a query's scale from the extremes of its splits: lane m has those of split m, the largest score and the
 * largest negated one; they are infinite if a score is NaN or too large. One warp. */
static __device__ __forceinline__ struct pq_packed_scale scale_of(float most, float least)
{
  bool is_wild = __any_sync(WARP_ALL, most > SCORE_MAX);
  double low = 0, range = 0, largest = 0;

#pragma unroll
  for (int m = 0; m < SPLITS; m++) {
    float above = __shfl_sync(WARP_ALL, most, m), below = __shfl_sync(WARP_ALL, least, m);
    low -= (double)below;
    range += (double)above + (double)below;
    largest += (double)fmaxf(above, below);
  }
  return { low, !is_wild && range > 0 ? LEVELS / range : 0.0, largest * (16 * 0x1p-24) + 0x1p-140 };
}

/* Raise a split's extremes to those of one more score. */
static __device__ __forceinline__ void raise_extremes(float score, float &most, float &least)
{
  bool is_wild = !(fabsf(score) <= SCORE_MAX);

  most = fmaxf(most, is_wild ? INFINITY : score);
  least = fmaxf(least, is_wild ? INFINITY : -score);
}

/* Empty lists, by one block. */
template <unsigned N_THREADS> static __device__ __forceinline__ void clear_counters(uint32_t *counters, size_t n)
{
  for (size_t i = threadIdx.x; i < n; i += N_THREADS)
    counters[i] = 0;
}

/* low: the split's lowest score */
static __device__ __forceinline__ uint32_t level_of(float score, float low, double rate)
{
  return rate > 0 ? (uint32_t)ceil(((double)score - (double)low) * rate) : 0;
}

/* For more than FEW_QUERIES -------------------- */

/* A block's shared memory while it finds a query's scale. */
struct scale_memory {
  struct pq_packed_scale scale;
  float most[SCALE_WARPS][SPLITS], least[SCALE_WARPS][SPLITS];
  float lows[SPLITS];
};

/* Find a query's scale. All threads of a block of SUBITEMS threads call this, each with the scores of its sub-item. */
static __device__ __forceinline__ void find_scale(const float (&scores)[SPLITS], struct scale_memory *memory)
{
#pragma unroll
  for (int m = 0; m < SPLITS; m++) {
    float most = -INFINITY, least = -INFINITY;
    raise_extremes(scores[m], most, least);
    most = warp_max(most);
    least = warp_max(least);
    if (warp_lane() == 0) {
      memory->most[threadIdx.x / WARP_LANES][m] = most;
      memory->least[threadIdx.x / WARP_LANES][m] = least;
    }
  }
  __syncthreads();
  if (threadIdx.x < WARP_LANES) {
    unsigned m = warp_lane() % SPLITS;
    float most = memory->most[0][m], least = memory->least[0][m];
#pragma unroll
    for (int w = 1; w < SCALE_WARPS; w++) {
      most = fmaxf(most, memory->most[w][m]);
      least = fmaxf(least, memory->least[w][m]);
    }
    struct pq_packed_scale scale = scale_of(most, least);
    if (warp_lane() == 0)
      memory->scale = scale;
    if (warp_lane() < SPLITS)
      memory->lows[m] = -least;
  }
  __syncthreads();
}

/* Write the levels of one query of a group and one split to all copies. One block of SUBITEMS threads for each: finding
 * the scale takes less time than writing all splits. Queries past the end have levels of 0. The first block also
 * empties lists. */
template <int Q>
static __global__ void __launch_bounds__(SUBITEMS)
    prepare(struct pq_scan_input in, struct pq_packed_levels levels, uint32_t *counters, size_t n_counters)
{
  begin_kernel();
  if (blockIdx.x == 0 && blockIdx.y == 0)
    clear_counters<SUBITEMS>(counters, n_counters);
  typedef layout<Q> L;
  size_t query = blockIdx.x, group = query / Q;
  struct scale_memory *memory = shared_memory<struct scale_memory>();
  float scores[SPLITS];
  uint8_t *row = levels.tables + group * L::TABLE_BYTES + threadIdx.x * ROW_BYTES + query % Q * sizeof(uint16_t);

#pragma unroll
  for (int m = 0; m < SPLITS; m++)
    scores[m] = query < in.n_queries ? in.subitem_scores[(query * SPLITS + m) * SUBITEMS + threadIdx.x] : 0.0f;
  find_scale(scores, memory);
  if (threadIdx.x == 0 && blockIdx.y == 0)
    levels.scales[query] = memory->scale;
#pragma unroll
  for (int m = 0; m < SPLITS; m++) {
    if (m != (int)blockIdx.y)
      continue;
    uint32_t level = level_of(scores[m], memory->lows[m], memory->scale.rate);
    uint8_t *piece = row + m / L::SPREAD * ROWS_BYTES + m % L::SPREAD * L::COPIES * L::PIECE;
    for (int copy = 0; copy < L::COPIES; copy++)
      *reinterpret_cast<uint16_t *>(piece + copy * L::PIECE) = (uint16_t)level;
  }
}

/* For up to FEW_QUERIES -------------------- */

/* A block's shared memory while it makes the levels of few queries. */
struct few_memory {
  struct pq_packed_scale scales[FEW_QUERIES];
  float lows[FEW_QUERIES][SPLITS];
  float most[FEW_QUERIES][WARPS][SPLITS], least[FEW_QUERIES][WARPS][SPLITS];
};

/* A thread has some sub-items of one split, so eight lanes write a row of the table without a bank conflict. */
enum {
  FEW_STEP = THREADS / SPLITS, /* from one sub-item of a thread to the next */
  FEW_EACH = SUBITEMS / FEW_STEP
};

/* Note a warp's extremes of each split. */
static __device__ __forceinline__ void note_extremes(const float (&scores)[FEW_EACH], unsigned query,
                                                     struct few_memory *memory)
{
  float most = -INFINITY, least = -INFINITY;

#pragma unroll
  for (int i = 0; i < FEW_EACH; i++)
    raise_extremes(scores[i], most, least);
#pragma unroll
  for (int step = SPLITS; step < WARP_LANES; step *= 2) {
    most = fmaxf(most, __shfl_xor_sync(WARP_ALL, most, step));
    least = fmaxf(least, __shfl_xor_sync(WARP_ALL, least, step));
  }
  if (warp_lane() < SPLITS) {
    memory->most[query][threadIdx.x / WARP_LANES][warp_lane()] = most;
    memory->least[query][threadIdx.x / WARP_LANES][warp_lane()] = least;
  }
}

/* Find a query's scale from the extremes of all warps. One warp. */
static __device__ __forceinline__ void find_few_scale(unsigned query, struct few_memory *memory)
{
  unsigned m = warp_lane() % SPLITS;
  float most = -INFINITY, least = -INFINITY;

#pragma unroll
  for (unsigned w = 0; w < WARPS; w += WARP_LANES / SPLITS) {
    most = fmaxf(most, memory->most[query][w + warp_lane() / SPLITS][m]);
    least = fmaxf(least, memory->least[query][w + warp_lane() / SPLITS][m]);
  }
#pragma unroll
  for (int step = SPLITS; step < WARP_LANES; step *= 2) {
    most = fmaxf(most, __shfl_xor_sync(WARP_ALL, most, step));
    least = fmaxf(least, __shfl_xor_sync(WARP_ALL, least, step));
  }
  struct pq_packed_scale scale = scale_of(most, least);
  if (warp_lane() == 0)
    memory->scales[query] = scale;
  if (warp_lane() < SPLITS)
    memory->lows[query][m] = -least;
}

/* Make the table of up to FEW_QUERIES queries in shared memory; those past the end have levels of 0. All THREADS of a
 * block call this. The first block also writes what it has made to `levels`. A barrier must follow. */
static __device__ __forceinline__ void make_few(const struct pq_scan_input &in, const struct pq_packed_levels &levels,
                                                uint8_t *table, struct few_memory *memory)
{
  typedef layout<FEW_QUERIES> L;
  unsigned m = threadIdx.x % SPLITS, first = threadIdx.x / SPLITS;
  float scores[FEW_QUERIES][FEW_EACH];

  static_assert((int)L::SPREAD == (int)SPLITS && L::COPIES * L::PIECE == sizeof(uint4) && L::PIECE == sizeof(uint32_t),
                "a row has all splits, four copies of a word each");
#pragma unroll
  for (unsigned q = 0; q < FEW_QUERIES; q++) {
#pragma unroll
    for (unsigned i = 0; i < FEW_EACH; i++)
      scores[q][i] =
          q < in.n_queries ? in.subitem_scores[(q * SPLITS + m) * SUBITEMS + first + i * FEW_STEP] : 0.0f;
  }
#pragma unroll
  for (unsigned q = 0; q < FEW_QUERIES; q++)
    note_extremes(scores[q], q, memory);
  __syncthreads();
  if (threadIdx.x / WARP_LANES < FEW_QUERIES)
    find_few_scale(threadIdx.x / WARP_LANES, memory);
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < FEW_EACH; i++) {
    uint32_t at = (first + i * FEW_STEP) * ROW_BYTES + m * sizeof(uint4), word = 0;
#pragma unroll
    for (unsigned q = 0; q < FEW_QUERIES; q++)
      word |= level_of(scores[q][i], memory->lows[q][m], memory->scales[q].rate) << 16 * q;
    *reinterpret_cast<uint4 *>(table + at) = uint4{ word, word, word, word };
    if (blockIdx.x == 0)
      *reinterpret_cast<uint4 *>(levels.tables + at) = uint4{ word, word, word, word };
  }
  if (blockIdx.x == 0 && threadIdx.x < FEW_QUERIES)
    levels.scales[threadIdx.x] = memory->scales[threadIdx.x];
}

#endif
