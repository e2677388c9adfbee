/* SPDX-License-Identifier: Apache-2.0 */
/* Loads tiles of items and rows of queries for the tensor core, and multiplies them, for the scans of mol_pairs.cu.
 *
 * Items lie in shared memory one after another, in pieces of 16 bytes. The tensor core reads eight items at a time, one
 * piece of each. An item's pieces are permuted by its number, so that eight such pieces lie in all banks.
 */
#ifndef KERNELS_CUDA_MOL_PAIRS_TILE_CUH
#define KERNELS_CUDA_MOL_PAIRS_TILE_CUH

#include "kernels/cuda/mol_pairs.h"
#include "kernels/cuda/warp.cuh"

enum {
  TILE = 64,
  STEP_ITEMS = 16, /* items per tensor-core product */
  ROWS = 32,       /* rows per warp */
  ROW_TILES = ROWS / 8,
  STEP_NUMBERS = 16, /* numbers per tensor-core product */
  GROUP = MOL_PAIRS_GROUP,
  PIECE = 8, /* numbers of 16 bytes */
  GROUP_PIECES = GROUP / PIECE,
  GROUP_STEPS = GROUP / STEP_NUMBERS,
};

/* S of mol_pairs.h's proof, for rows of n_groups groups of 32 numbers. A group takes two steps. */
static __device__ __forceinline__ float slack_of(size_t n_groups)
{
  return (float)(2 * n_groups + 1) * MMA_ERROR;
}

/* A tile's present items, one bit each, and their largest residual; infinity if one of them is NaN. */
struct tile {
  uint64_t present;
  float residual;
};

/* What a lane reads of a tile, of items `lane` and `lane + 32`. The reads do not wait for each other, and nothing waits
 * for them until tile_of() is called. */
struct tile_reads {
  uint8_t present[2];
  float residuals[2];
};

static __device__ __forceinline__ struct tile_reads read_tile(const struct mol_pairs_input &in, size_t first,
                                                              size_t n_slots)
{
  struct tile_reads reads = {};

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    size_t slot = first + i * WARP_LANES + warp_lane();
    if (slot < n_slots) {
      reads.present[i] = in.items.present[slot];
      reads.residuals[i] = in.halves.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT];
    }
  }
  return reads;
}

static __device__ __forceinline__ struct tile tile_of(const struct tile_reads &reads)
{
  struct tile tile = {};
  float most = 0.0f;

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    tile.present |= (uint64_t)__ballot_sync(WARP_ALL, reads.present[i]) << i * WARP_LANES;
    if (reads.present[i])
      most = reads.residuals[i] < INFINITY ? fmaxf(most, reads.residuals[i]) : INFINITY;
  }
  tile.residual = warp_max(most);
  return tile;
}

static __device__ __forceinline__ bool is_present(const struct tile &tile, unsigned item)
{
  return tile.present >> item & 1;
}

/* The position of an item's piece in a buffer, in numbers. */
template <int GROUPS> static __device__ __forceinline__ unsigned place(unsigned item, unsigned piece)
{
  unsigned turn = GROUPS == 1 ? item / 2 % 4 : item % 8; /* 128 bytes hold two items of one group */

  return (item * (GROUPS * GROUP_PIECES) + (piece ^ turn)) * PIECE;
}

/* What a thread of a block copies of each component of a tile: EACH pieces, of as many items. */
template <int GROUPS, int N_THREADS> struct tile_copier {
  enum {
    PIECES = GROUPS * GROUP_PIECES, /* of an item */
    EACH = TILE * PIECES / N_THREADS,
    APART = N_THREADS / PIECES /* items; the same permutation of pieces */
  };
  uint32_t from, to; /* the first number, in the tile and in the buffer */
  bool is_in;        /* the piece is not padding */
};

/* Found anew for each step: registers are short. */
template <int GROUPS, int N_THREADS>
static __device__ __forceinline__ tile_copier<GROUPS, N_THREADS> copier_of(const struct mol_pairs_input &in,
                                                                           uint32_t stride)
{
  typedef tile_copier<GROUPS, N_THREADS> C;
  uint32_t thread = in_register(threadIdx.x), item = thread / C::PIECES, piece = thread % C::PIECES;

  static_assert(TILE * C::PIECES % N_THREADS == 0 && C::APART % 8 == 0, "every thread copies as much");
  return { item * stride + piece * PIECE, place<GROUPS>(item, piece), piece * PIECE < in.component_dim };
}

/* Start to prefetch a component of a tile's items, whose first number is `from`. The padding of rows is not written. */
template <int GROUPS, int N_THREADS>
static __device__ __forceinline__ void load_pieces(const tile_copier<GROUPS, N_THREADS> &copier, const half_bits *from,
                                                   uint32_t stride, half_bits *buffer)
{
  typedef tile_copier<GROUPS, N_THREADS> C;

#pragma unroll
  for (uint32_t i = 0; i < C::EACH; i++) {
    if (copier.is_in)
      copy_async(buffer + copier.to + i * (C::APART * GROUPS * GROUP), from + copier.from + i * C::APART * stride);
  }
}

/* The same for items that are not aligned to pieces, at once. */
template <int GROUPS, int N_THREADS>
static __device__ void load_numbers(uint32_t dim, const half_bits *from, uint32_t stride, half_bits *buffer)
{
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < TILE * GROUPS * GROUP; i += N_THREADS) {
    uint32_t item = i / (GROUPS * GROUP), k = i % (GROUPS * GROUP);
    if (k < dim)
      buffer[place<GROUPS>(item, k / PIECE) + k % PIECE] = from[item * stride + k];
  }
}

/* A lane's operands of 32 rows, and the margins of its rows 8 i + 2 t and 8 i + 2 t + 1, where t is lane % 4. */
template <int GROUPS> struct row_part {
  uint32_t operands[GROUPS * GROUP_STEPS][ROW_TILES][2];
  float norm[2 * ROW_TILES], base[2 * ROW_TILES];
};

template <int GROUPS>
static __device__ void load_rows(const struct mol_pairs_rows &rows, size_t first, struct row_part<GROUPS> &part)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    size_t row = first + 8 * j + g;
#pragma unroll
    for (int i = 0; i < 2 * GROUPS * GROUP_STEPS; i++) /* two words of each step */
      part.operands[i / 2][j][i % 2] =
          row < rows.n ? *reinterpret_cast<const uint32_t *>(rows.halves + row * (GROUPS * GROUP) + i * PIECE + 2 * t)
                       : 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      row = first + 8 * j + 2 * t + i;
      part.norm[2 * j + i] = row < rows.n ? rows.margins[row].norm : 0.0f;
      part.base[2 * j + i] = row < rows.n ? rows.margins[row].base : 0.0f;
    }
  }
}

/* Multiply 16 items by the 8 rows of row tile j and add `start`. */
template <int GROUPS>
static __device__ __forceinline__ void multiply(const uint32_t (&items)[GROUPS * GROUP_STEPS][4],
                                                const struct row_part<GROUPS> &part, int j, const float start[4],
                                                float sums[4])
{
#pragma unroll
  for (int step = 0; step < GROUPS * GROUP_STEPS; step++)
    mma_f16(sums, items[step], part.operands[step][j], step == 0 ? start : sums);
}

/* The lane's row of the tensor core's four matrices, for items 0 to 15 and step 0, in numbers from the buffer's begin:
 * items 0 to 7 and 8 to 15 by the first 8 numbers, then by the other 8. */
template <int GROUPS> static __device__ __forceinline__ unsigned lane_place()
{
  return place<GROUPS>(warp_lane() % 16, warp_lane() / 16);
}

/* Load a lane's operands of items 16 i to 16 i + 15. `lane_place` is the function's result. */
template <int GROUPS>
static __device__ __forceinline__ void load_items(const half_bits *buffer, unsigned i, unsigned lane_place,
                                                  uint32_t (&items)[GROUPS * GROUP_STEPS][4])
{
#pragma unroll
  for (unsigned step = 0; step < GROUPS * GROUP_STEPS; step++) /* the permutation is an exclusive or */
    load_matrices(items[step], buffer + i * (STEP_ITEMS * GROUPS * GROUP) + (lane_place ^ step * STEP_NUMBERS));
}

#endif
