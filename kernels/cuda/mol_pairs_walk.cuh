/* SPDX-License-Identifier: Apache-2.0 */
/* How the blocks of mol_pairs.cu go through the catalogue, and what they load on the way.
 *
 * The tiles of a scan form sets: set s is the tiles s, s + n_sets, s + 2 n_sets and so on. Each of a block's ITEM_WARPS
 * groups of warps has a set at a time, all of them neighbours. In a step a block works on up to TOGETHER components of
 * ITEM_WARPS tiles.
 */
#ifndef KERNELS_CUDA_MOL_PAIRS_WALK_CUH
#define KERNELS_CUDA_MOL_PAIRS_WALK_CUH

#include "kernels/cuda/mol_pairs_tile.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP_LANES };

/* Tile t starts at slot t * stride * TILE and ends below n_slots. */
struct scan_range {
  uint32_t n_slots, stride, n_tiles, n_sets;
  uint32_t item_halves; /* numbers from one item to the next */
};

/* The sizes of a scan. A stage is [TOGETHER][ITEM_WARPS][BUFFER] numbers, 32 KiB at most. */
template <int GROUPS, int ROW_TILES, int ROW_WARPS> struct scan_sizes {
  enum {
    ITEM_WARPS = WARPS / ROW_WARPS,
    WARP_ROWS = ROW_TILES * TILE_ROWS,
    BLOCK_ROWS = ROW_WARPS * WARP_ROWS,
    ITEM = GROUPS * GROUP,                      /* numbers of a component of an item */
    BUFFER = TILE * ITEM,                       /* of a tile */
    TOGETHER = GROUPS > 1 ? 1 : 8 / ITEM_WARPS, /* what registers allow */
    APART = ITEM_WARPS * BUFFER + (GROUPS == 1 ? GROUP : 0), /* from one component to the next: in other banks */
    STAGE = TOGETHER * APART,
    PIECES = TOGETHER * GROUPS * GROUP_PIECES, /* of an item in a step */
    ITEMS_EACH_TIME = THREADS / PIECES,        /* that a block copies, a piece for each thread */
    READS_AHEAD = GROUPS != 2 /* where registers allow, what is read of a tile is on its way during the one before */
  };
  static_assert(ITEMS_EACH_TIME % 8 == 0, "the same permutation of pieces each time");
};

/* A block's current step: components from `component` on, of the tiles from first_tile on, of the sets from first_set
 * on. */
struct cursor {
  uint32_t first_set, first_tile, component;
};

static __host__ __device__ __forceinline__ unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Go on to the next tiles of the same sets, or to the first ones of the next sets. */
template <class S>
static __device__ __forceinline__ void next_tiles(struct cursor &at, const struct scan_range &range)
{
  at.component = 0;
  at.first_tile += range.n_sets;
  if (at.first_tile >= range.n_tiles) {
    at.first_set += gridDim.x * S::ITEM_WARPS;
    at.first_tile = at.first_set;
  }
}

template <class S>
static __device__ __forceinline__ void advance(struct cursor &at, const struct scan_range &range, uint32_t n_components)
{
  at.component += S::TOGETHER;
  if (at.component >= n_components)
    next_tiles<S>(at, range);
}

/* The number of tiles in a step; 0 past the last set. */
template <class S>
static __device__ __forceinline__ uint32_t tiles_of(const struct cursor &at, const struct scan_range &range)
{
  if (at.first_set >= range.n_sets)
    return 0;
  return least(least(range.n_sets - at.first_set, range.n_tiles - at.first_tile), S::ITEM_WARPS);
}

/* Start to prefetch a step's items whose components are whole pieces. Each item's components lie one after another, and
 * so do their pieces; a thread copies one of every ITEMS_EACH_TIME-th item. The padding of rows is not written.
 *
 * from: the first number  n: components of the step */
template <class S>
static __device__ __forceinline__ void load_pieces(const struct mol_pairs_input &in, const struct scan_range &range,
                                                   const half_bits *from, uint32_t n_tiles, uint32_t n,
                                                   half_bits *stage)
{
  uint32_t dim = (uint32_t)in.component_dim, item = threadIdx.x / S::PIECES, number = threadIdx.x % S::PIECES * PIECE;
  uint32_t component = number / dim, piece = (number - component * dim) / PIECE;

  if (component >= n)
    return;
  from += item * range.item_halves + number;
  stage += component * S::APART + place<S::ITEM / GROUP>(item, piece);
#pragma unroll 1
  for (uint32_t i = 0; i < n_tiles; i++) {
    const half_bits *tile = from + (size_t)i * range.stride * TILE * range.item_halves;
#pragma unroll
    for (uint32_t at = 0; at < TILE; at += S::ITEMS_EACH_TIME) {
      copy_async(stage + i * S::BUFFER + at * S::ITEM, tile);
      tile += S::ITEMS_EACH_TIME * range.item_halves;
    }
  }
}

/* The same for items that are not aligned to pieces, at once. */
template <class S>
static __device__ void load_numbers(const struct mol_pairs_input &in, const struct scan_range &range,
                                    const half_bits *from, uint32_t n_tiles, uint32_t n, half_bits *stage)
{
  uint32_t dim = (uint32_t)in.component_dim;

#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < n_tiles * n * TILE * S::ITEM; i += THREADS) {
    uint32_t k = i % S::ITEM, item = i / S::ITEM % TILE, c = i / S::BUFFER % n, tile = i / S::BUFFER / n;
    if (k < dim)
      stage[c * S::APART + tile * S::BUFFER + place<S::ITEM / GROUP>(item, k / PIECE) + k % PIECE] =
          from[((size_t)tile * range.stride * TILE + item) * range.item_halves + c * dim + k];
  }
}

/* Start to prefetch a step's items, all items of a tile, whether they are there or not. */
template <class S>
static __device__ __forceinline__ void load_step(const struct mol_pairs_input &in, const struct scan_range &range,
                                                 const struct cursor &at, half_bits *stage)
{
  uint32_t n = least((uint32_t)in.n_components - at.component, S::TOGETHER), n_tiles = tiles_of<S>(at, range);
  const half_bits *from = in.halves.components + (size_t)at.first_tile * range.stride * TILE * range.item_halves +
                          (in.first_component + at.component) * in.component_dim;

  if (n_tiles > 0 && in.component_dim % PIECE == 0)
    load_pieces<S>(in, range, from, n_tiles, n, stage);
  else if (n_tiles > 0)
    load_numbers<S>(in, range, from, n_tiles, n, stage);
  copy_async_commit();
}

#endif
