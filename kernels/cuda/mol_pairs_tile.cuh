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

/* Load the residuals of a tile's items `lane` and `lane + 32`. Negative if the item is absent. */
static __device__ __forceinline__ float2 load_residuals(const struct mol_pairs_input &in, size_t first, size_t n_slots)
{
  size_t slot = first + warp_lane();
  float2 r = { -1.0f, -1.0f };

  if (slot < n_slots && in.items.present[slot])
    r.x = in.halves.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT];
  slot += WARP_LANES;
  if (slot < n_slots && in.items.present[slot])
    r.y = in.halves.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT];
  r.x = r.x < INFINITY ? r.x : INFINITY;
  r.y = r.y < INFINITY ? r.y : INFINITY;
  return r;
}

static __device__ __forceinline__ struct tile tile_of(float2 residuals)
{
  struct tile tile;

  tile.present = __ballot_sync(WARP_ALL, residuals.x >= 0.0f);
  tile.present |= (uint64_t)__ballot_sync(WARP_ALL, residuals.y >= 0.0f) << WARP_LANES;
  tile.residual = warp_max(fmaxf(fmaxf(residuals.x, residuals.y), 0.0f));
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

/* Start to prefetch component m of a tile's items. A block of N_THREADS calls this. The padding of rows is not written.
 */
template <int GROUPS, int N_THREADS>
static __device__ void load_tile(const struct mol_pairs_input &in, size_t first, size_t m, size_t stride,
                                 half_bits *buffer)
{
  size_t dim = in.component_dim;
  const half_bits *from = in.halves.components + first * stride + m * dim;

  static_assert(TILE * GROUPS * GROUP_PIECES % N_THREADS == 0, "every thread copies as much");
  if (dim % PIECE == 0) {
#pragma unroll
    for (unsigned n = 0; n < TILE * GROUPS * GROUP_PIECES; n += N_THREADS) {
      unsigned i = n + threadIdx.x;
      unsigned item = i / (GROUPS * GROUP_PIECES), piece = i % (GROUPS * GROUP_PIECES);
      if (piece * PIECE < dim)
        copy_async(buffer + place<GROUPS>(item, piece), from + item * stride + piece * PIECE);
    }
  } else {
    for (unsigned i = threadIdx.x; i < TILE * GROUPS * GROUP; i += N_THREADS) {
      unsigned item = i / (GROUPS * GROUP), k = i % (GROUPS * GROUP);
      if (k < dim)
        buffer[place<GROUPS>(item, k / PIECE) + k % PIECE] = from[item * stride + k];
    }
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
