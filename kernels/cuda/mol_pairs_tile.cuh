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
  TILE_ROWS = 8,   /* rows per product: a row tile */
  STEP_NUMBERS = 16, /* numbers per tensor-core product */
  GROUP = MOL_PAIRS_GROUP,
  PIECE = 8, /* numbers of 16 bytes */
  GROUP_PIECES = GROUP / PIECE,
  GROUP_STEPS = GROUP / STEP_NUMBERS,
};

/* Groups of a row with so many numbers. */
static inline __host__ __device__ size_t groups_of(size_t dim)
{
  return dim <= 2 * GROUP ? (dim + GROUP - 1) / GROUP : MOL_PAIRS_DIM_MAX / GROUP;
}

/* S of mol_pairs.h's proof, for rows of n_groups groups of 32 numbers. A group takes two steps. */
static __device__ __forceinline__ float slack_of(size_t n_groups)
{
  return (float)(2 * n_groups + 1) * MMA_HALF_ERROR;
}

/* The proof's R: the largest residual of a normalised component. */
static __device__ __forceinline__ float largest_residual(size_t dim)
{
  return (0x1p-11f + sqrtf((float)dim) * 0x1p-25f) * (1.0f + 0x1p-9f);
}

/* A tile's present items, one bit each. */
struct tile {
  uint64_t present;
  bool is_known; /* all their residuals are at most R; else nothing is known of their dot products */
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

static __device__ __forceinline__ struct tile tile_of(const struct tile_reads &reads, float largest)
{
  struct tile tile = {};
  bool is_unknown = false;

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    tile.present |= (uint64_t)__ballot_sync(WARP_ALL, reads.present[i]) << i * WARP_LANES;
    is_unknown |= reads.present[i] && !(reads.residuals[i] <= largest);
  }
  tile.is_known = !__any_sync(WARP_ALL, is_unknown);
  return tile;
}

static __device__ __forceinline__ bool is_present(const struct tile &tile, unsigned item)
{
  return tile.present >> item & 1;
}

/* A warp's work on a tile. */
struct work {
  uint32_t set, tile_index, first_slot; /* the tile's */
  uint32_t first_row;                   /* the warp's */
  struct tile tile;
};

/* The position of an item's piece in a buffer, in numbers. */
template <int GROUPS> static __device__ __forceinline__ unsigned place(unsigned item, unsigned piece)
{
  unsigned turn = GROUPS == 1 ? item / 2 % 4 : item % 8; /* 128 bytes hold two items of one group */

  return (item * (GROUPS * GROUP_PIECES) + (piece ^ turn)) * PIECE;
}

/* A lane's operands of a warp's rows. */
template <int GROUPS, int ROW_TILES> struct row_part {
  uint32_t operands[GROUPS * GROUP_STEPS][ROW_TILES][2];
};

template <int GROUPS, int ROW_TILES>
static __device__ void load_rows(const struct mol_pairs_rows &rows, size_t first, row_part<GROUPS, ROW_TILES> &part)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    size_t row = first + TILE_ROWS * j + g;
#pragma unroll
    for (int i = 0; i < 2 * GROUPS * GROUP_STEPS; i++) /* two words of each step */
      part.operands[i / 2][j][i % 2] =
          row < rows.n ? *reinterpret_cast<const uint32_t *>(rows.halves + row * (GROUPS * GROUP) + i * PIECE + 2 * t)
                       : 0;
  }
}

/* Multiply 16 items by the 8 rows of row tile j and add `start`: sums[0] are those of item g and rows 2 t and 2 t + 1,
 * sums[1] those of item g + 8. */
template <int GROUPS, int ROW_TILES>
static __device__ __forceinline__ void multiply(const uint32_t (&items)[GROUPS * GROUP_STEPS][4],
                                                const row_part<GROUPS, ROW_TILES> &part, int j, const uint32_t start[2],
                                                uint32_t sums[2])
{
#pragma unroll
  for (int step = 0; step < GROUPS * GROUP_STEPS; step++)
    mma_halves(sums, items[step], part.operands[step][j], step == 0 ? start : sums);
}

/* A lane's row of the tensor core's four matrices, for items 0 to 15 and step 0, in numbers from the buffer's begin:
 * items 0 to 7 and 8 to 15 by the first 8 numbers, then by the other 8. */
template <int GROUPS> static __device__ __forceinline__ unsigned lane_place()
{
  return place<GROUPS>(warp_lane() % 16, warp_lane() / 16);
}

/* Where a lane reads its operands of items 0 to 15 of a buffer, for each step: shared_address() of its rows. */
template <int GROUPS> struct lane_rows {
  uint32_t of_step[GROUPS * GROUP_STEPS];
};

/* my_place: lane_place() */
template <int GROUPS>
static __device__ __forceinline__ lane_rows<GROUPS> lane_rows_of(const half_bits *buffer, unsigned my_place)
{
  uint32_t first = shared_address(buffer);
  lane_rows<GROUPS> rows;

#pragma unroll
  for (unsigned step = 0; step < GROUPS * GROUP_STEPS; step++) /* the permutation is an exclusive or */
    rows.of_step[step] = first + (my_place ^ step * STEP_NUMBERS) * (uint32_t)sizeof(half_bits);
  return rows;
}

/* Load a lane's operands of items 16 i to 16 i + 15. */
template <int GROUPS>
static __device__ __forceinline__ void load_items(const lane_rows<GROUPS> &rows, unsigned i,
                                                  uint32_t (&items)[GROUPS * GROUP_STEPS][4])
{
  enum { APART = STEP_ITEMS * GROUPS * GROUP * sizeof(half_bits) };

#pragma unroll
  for (unsigned step = 0; step < GROUPS * GROUP_STEPS; step++)
    load_matrices_at(items[step], rows.of_step[step] + i * APART);
}

#endif
