/* SPDX-License-Identifier: Apache-2.0 */
/* What the maxima scan of mol_pairs.cu does with a component of a tile. */
#ifndef KERNELS_CUDA_MOL_PAIRS_MAXIMA_CUH
#define KERNELS_CUDA_MOL_PAIRS_MAXIMA_CUH

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/mol_pairs_walk.cuh"

#define NO_MAXIMA 0xfc00fc00u /* two halves, -inf */

/* Set a lane's sums of row tile j and items 16 i to 16 i + 15 to -inf where the row does not admit the item. */
static __device__ void drop_others(const struct mol_pairs_rows &rows, const struct work &work, unsigned i, int j,
                                   uint32_t sums[2])
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  for (unsigned k = 0; k < 4; k++) {
    uint32_t row = work.first_row + TILE_ROWS * j + 2 * t + k % 2, half = 0xffffu << k % 2 * 16;
    if (row < rows.n && !is_admitted(rows.admitted, row, work.first_slot + STEP_ITEMS * i + g + k / 2 * 8))
      sums[k / 2] = (sums[k / 2] & ~half) | (NO_MAXIMA & half);
  }
}

/* Raise best[j] to the largest sums of a tile's items with the lane's rows 8 j + 2 t and 8 j + 2 t + 1, t = lane % 4.
 * IS_WHOLE: every row admits all 64 items, and all are present. */
template <bool IS_WHOLE, int GROUPS, int ROW_TILES>
static __device__ __forceinline__ void raise_best(const lane_rows<GROUPS> &my_rows, const struct work &work,
                                                  const struct mol_pairs_rows &rows,
                                                  const row_part<GROUPS, ROW_TILES> &part, uint32_t (&best)[ROW_TILES])
{
  unsigned g = warp_lane() / 4;

#pragma unroll(IS_WHOLE && ROW_TILES < 8 ? 2 : 1)
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    uint32_t items[GROUPS * GROUP_STEPS][4];
    uint32_t start[2] = { IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g) ? 0 : NO_MAXIMA,
                          IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g + 8) ? 0 : NO_MAXIMA };
    load_items<GROUPS>(my_rows, i, items);
#pragma unroll
    for (int j = 0; j < ROW_TILES; j++) {
      uint32_t sums[2];
      multiply(items, part, j, start, sums);
      if (!IS_WHOLE && rows.admitted.of)
        drop_others(rows, work, i, j, sums);
      best[j] = half_pair_larger(best[j], half_pair_larger(sums[0], sums[1]));
    }
  }
}

/* The row tile whose maxima spread_maxima() gives a lane. With fewer than 8, other lanes get the same ones; the first
 * 4 ROW_TILES lanes have all. */
template <int ROW_TILES> static __device__ __forceinline__ unsigned tile_of_maxima()
{
  unsigned lane = warp_lane(), tile = 0;

#pragma unroll
  for (unsigned n = ROW_TILES / 2, bit = 4; n > 0; n /= 2, bit *= 2)
    tile += lane & bit ? n : 0;
  return tile;
}

/* Return the largest halves of x[tile_of_maxima()] of the lanes with the same lane % 4. */
template <int ROW_TILES> static __device__ __forceinline__ uint32_t spread_maxima(uint32_t (&x)[ROW_TILES])
{
#pragma unroll
  for (int bit = 4, n = ROW_TILES / 2; bit < WARP_LANES; bit *= 2, n /= 2) {
    bool is_high = warp_lane() & bit;
    if (n == 0)
      x[0] = half_pair_larger(x[0], __shfl_xor_sync(WARP_ALL, x[0], bit));
#pragma unroll
    for (int j = 0; j < n; j++)
      x[j] = half_pair_larger(is_high ? x[j + n] : x[j], __shfl_xor_sync(WARP_ALL, is_high ? x[j] : x[j + n], bit));
  }
  return x[0];
}

/* The largest sums of a tile's items with rows 8 j + 2 t and 8 j + 2 t + 1, where j is tile_of_maxima(). */
template <int GROUPS, int ROW_TILES>
static __device__ __forceinline__ uint32_t tile_maxima(const lane_rows<GROUPS> &my_rows, const struct work &work,
                                                       const struct mol_pairs_rows &rows,
                                                       const row_part<GROUPS, ROW_TILES> &part)
{
  uint32_t best[ROW_TILES];

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++)
    best[j] = NO_MAXIMA;
  if (work.tile.present == ~UINT64_C(0) && !rows.admitted.of)
    raise_best<true>(my_rows, work, rows, part, best);
  else
    raise_best<false>(my_rows, work, rows, part, best);
  uint32_t maxima = spread_maxima(best);
  return work.tile.is_known ? maxima : NO_MAXIMA;
}

/* Raise a lane's maxima of a component, and write the lower bounds after the set's last tile. */
template <int ROW_TILES>
static __device__ __forceinline__ void raise_maxima(const struct scan_range &range, const struct work &work,
                                                    const struct mol_pairs_rows &rows, uint32_t component,
                                                    uint32_t of_tile, uint32_t *held, float *maxima)
{
  uint32_t all = work.tile_index == work.set ? of_tile : half_pair_larger(*held, of_tile);

  if (work.tile_index + range.n_sets < range.n_tiles) {
    *held = all;
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    size_t row = work.first_row + TILE_ROWS * tile_of_maxima<ROW_TILES>() + 2 * (warp_lane() % 4) + i;
    if (row < rows.n && warp_lane() < 4 * ROW_TILES)
      maxima[(component * rows.n + row) * range.n_sets + work.set] =
          float_of((half_bits)(all >> 16 * i)) - rows.margins[row];
  }
}

#endif
