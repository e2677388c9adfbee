/* SPDX-License-Identifier: Apache-2.0 */
/* Loads tiles of items and rows of queries for the tensor core, and multiplies them, for the scans of mol_pairs.cu.
 *
 * A sum of products may run over k in any order, as long as both operands use the same. Lane t of four takes numbers 8
 * t to 8 t + 7 of each 32, so 16 bytes are its operands of two steps. To avoid bank conflicts between eight lanes,
 * buffers swap every two groups of 32 numbers in odd items whose rows have 64 bytes or more.
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
  GROUP_PIECES = GROUP / 8, /* 16 bytes each */
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

/* The position of an item's group c of 32 numbers in a buffer, in numbers. */
template <int GROUPS> static __device__ __forceinline__ unsigned place(unsigned item, unsigned c)
{
  return (item * GROUPS + (GROUPS > 1 ? c ^ (item & 1) : c)) * GROUP;
}

/* Start to prefetch component m of a tile's items. The whole block calls this. The padding of rows is not written. */
template <int GROUPS>
static __device__ void load_tile(const struct mol_pairs_input &in, size_t first, size_t m, size_t stride,
                                 half_bits *buffer)
{
  size_t dim = in.component_dim;
  const half_bits *from = in.halves.components + first * stride + m * dim;

  if (dim % 8 == 0) {
    for (unsigned i = threadIdx.x; i < TILE * GROUPS * GROUP_PIECES; i += blockDim.x) {
      unsigned item = i / (GROUPS * GROUP_PIECES), piece = i % (GROUPS * GROUP_PIECES);
      if (piece * 8 < dim)
        copy_async(buffer + place<GROUPS>(item, piece / GROUP_PIECES) + piece % GROUP_PIECES * 8,
                   from + item * stride + piece * 8);
    }
  } else {
    for (unsigned i = threadIdx.x; i < TILE * GROUPS * GROUP; i += blockDim.x) {
      unsigned item = i / (GROUPS * GROUP), k = i % (GROUPS * GROUP);
      if (k < dim)
        buffer[place<GROUPS>(item, k / GROUP) + k % GROUP] = from[item * stride + k];
    }
  }
}

/* A lane's operands of 32 rows, and the margins of its rows 8 i + 2 t and 8 i + 2 t + 1, where t is lane % 4. */
template <int GROUPS> struct row_part {
  uint4 operands[GROUPS][ROW_TILES];
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
    for (int c = 0; c < GROUPS; c++) {
      part.operands[c][j] = uint4{ 0, 0, 0, 0 };
      if (row < rows.n)
        part.operands[c][j] =
            *reinterpret_cast<const uint4 *>(rows.halves + row * (GROUPS * GROUP) + c * GROUP + 8 * t);
    }
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
static __device__ __forceinline__ void multiply(const uint4 (&low)[GROUPS], const uint4 (&high)[GROUPS],
                                                const struct row_part<GROUPS> &part, int j, const float start[4],
                                                float sums[4])
{
#pragma unroll
  for (int c = 0; c < GROUPS; c++) {
    const uint4 &row = part.operands[c][j];
    uint32_t a[4] = { low[c].x, high[c].x, low[c].y, high[c].y }, b[2] = { row.x, row.y };
    mma_f16(sums, a, b, c == 0 ? start : sums);
    uint32_t a2[4] = { low[c].z, high[c].z, low[c].w, high[c].w }, b2[2] = { row.z, row.w };
    mma_f16(sums, a2, b2, sums);
  }
}

/* Load a lane's operands of items 16 i + g and 16 i + g + 8. */
template <int GROUPS>
static __device__ __forceinline__ void load_items(const half_bits *buffer, unsigned i, uint4 (&low)[GROUPS],
                                                  uint4 (&high)[GROUPS])
{
  unsigned item = STEP_ITEMS * i + warp_lane() / 4, t = warp_lane() % 4;

#pragma unroll
  for (int c = 0; c < GROUPS; c++) {
    low[c] = *reinterpret_cast<const uint4 *>(buffer + place<GROUPS>(item, c) + 8 * t);
    high[c] = *reinterpret_cast<const uint4 *>(buffer + place<GROUPS>(item + 8, c) + 8 * t);
  }
}

#endif
