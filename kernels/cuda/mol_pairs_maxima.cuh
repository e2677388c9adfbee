/* SPDX-License-Identifier: Apache-2.0 */
/* What the maxima scan of mol_pairs.cu does with a component of a tile. */
#ifndef KERNELS_CUDA_MOL_PAIRS_MAXIMA_CUH
#define KERNELS_CUDA_MOL_PAIRS_MAXIMA_CUH

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/mol_pairs_tile.cuh"

/* Set a lane's sums of row tile j and items 16 i to 16 i + 15 to -inf where the row does not admit the item. */
static __device__ void drop_others(const struct mol_pairs_rows &rows, const struct work &work, unsigned i, int j,
                                   float sums[4])
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  for (unsigned k = 0; k < 4; k++) {
    uint32_t row = work.first_row + 8 * j + 2 * t + k % 2;
    if (row < rows.n && !is_admitted(rows.admitted, row, work.first_slot + STEP_ITEMS * i + g + k / 2 * 8))
      sums[k] = -INFINITY;
  }
}

/* Raise best[j] to the largest sums of a tile's items with the lane's row 8 (j / 2) + 2 t + j % 2, t = lane % 4.
 * IS_WHOLE: every row admits all 64 items, and all are present. */
template <int GROUPS, bool IS_WHOLE>
static __device__ __forceinline__ void raise_best(const lane_rows<GROUPS> &lane_rows, const struct work &work,
                                                  const struct mol_pairs_rows &rows,
                                                  const struct row_part<GROUPS> &part, float (&best)[2 * ROW_TILES])
{
  unsigned g = warp_lane() / 4;

#pragma unroll(!IS_WHOLE ? 1 : GROUPS == 1 ? TILE / STEP_ITEMS : 2)
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    uint32_t items[GROUPS * GROUP_STEPS][4];
    float of_low = IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g) ? 0.0f : -INFINITY;
    float of_high = IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g + 8) ? 0.0f : -INFINITY;
    float start[4] = { of_low, of_low, of_high, of_high };
    load_items<GROUPS>(lane_rows, i, items);
#pragma unroll
    for (int j = 0; j < ROW_TILES; j++) {
      float sums[4];
      multiply<GROUPS>(items, part, j, start, sums);
      if (!IS_WHOLE && rows.admitted.of)
        drop_others(rows, work, i, j, sums);
      best[2 * j] = fmaxf(best[2 * j], fmaxf(sums[0], sums[2]));
      best[2 * j + 1] = fmaxf(best[2 * j + 1], fmaxf(sums[1], sums[3]));
    }
  }
}

/* Return the largest x[j] of the lanes with the same lane % 4, where j has bits 2 to 4 of the lane's number as its
 * highest to lowest bits. */
static __device__ __forceinline__ float spread_maxima(const float (&x)[2 * ROW_TILES])
{
  float left[ROW_TILES];

  static_assert(ROW_TILES == 4, "three halvings");
#pragma unroll
  for (int j = 0; j < 4; j++) {
    bool is_high = warp_lane() & 4;
    left[j] = fmaxf(is_high ? x[j + 4] : x[j], __shfl_xor_sync(WARP_ALL, is_high ? x[j] : x[j + 4], 4));
  }
#pragma unroll
  for (int j = 0; j < 2; j++) {
    bool is_high = warp_lane() & 8;
    left[j] = fmaxf(is_high ? left[j + 2] : left[j], __shfl_xor_sync(WARP_ALL, is_high ? left[j] : left[j + 2], 8));
  }
  bool is_high = warp_lane() & 16;
  return fmaxf(is_high ? left[1] : left[0], __shfl_xor_sync(WARP_ALL, is_high ? left[0] : left[1], 16));
}

/* The row of a warp whose maximum spread_maxima() gives a lane. */
static __device__ __forceinline__ uint32_t row_of_maximum()
{
  unsigned lane = warp_lane(), j = (lane & 4) | (lane >> 2 & 2) | lane >> 4;

  return 8 * (j / 2) + 2 * (lane % 4) + j % 2;
}

/* The largest lower bound of a tile's items with row row_of_maximum(), whose margin is given. */
template <int GROUPS>
static __device__ __forceinline__ float tile_maximum(const lane_rows<GROUPS> &lane_rows, const struct work &work,
                                                     const struct mol_pairs_rows &rows,
                                                     const struct row_part<GROUPS> &part,
                                                     const struct mol_pairs_margin &margin)
{
  float best[2 * ROW_TILES];

#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++)
    best[i] = -INFINITY;
  if (work.tile.present == ~UINT64_C(0) && !rows.admitted.of)
    raise_best<GROUPS, true>(lane_rows, work, rows, part, best);
  else
    raise_best<GROUPS, false>(lane_rows, work, rows, part, best);
  float bound = spread_maxima(best) - fmaf(margin.norm, work.tile.residual, margin.base);
  return work.tile.residual < INFINITY ? bound : -INFINITY;
}

#endif
