/* SPDX-License-Identifier: Apache-2.0 */
/* How the warps of mol_pairs.cu go through the catalogue, and what they load on the way.
 *
 * The tiles of a scan form sets: set s is the tiles s, s + n_sets, s + 2 n_sets and so on. A block's warps form
 * ITEM_WARPS groups, each of which has a set at a time. In a step a group works on up to TOGETHER components of a tile,
 * and loads those of the next step. Groups do not wait for each other.
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

/* The sizes of a scan. A stage is [TOGETHER][APART] numbers; those of a block's groups take some 32 KiB. */
template <int GROUPS, int ROW_TILES, int ROW_WARPS> struct scan_sizes {
  enum {
    ITEM_WARPS = WARPS / ROW_WARPS,
    GROUP_THREADS = ROW_WARPS * WARP_LANES,
    WARP_ROWS = ROW_TILES * TILE_ROWS,
    BLOCK_ROWS = ROW_WARPS * WARP_ROWS,
    ITEM = GROUPS * GROUP,                        /* numbers of a component of an item */
    TOGETHER = GROUPS > 1 ? 1 : 8 / ITEM_WARPS,   /* what registers allow */
    APART = TILE * ITEM + (GROUPS == 1 ? GROUP : 0), /* from one component to the next: in other banks */
    STAGE = TOGETHER * APART,
    PIECES = TOGETHER * GROUPS * GROUP_PIECES, /* of an item in a step */
    ITEMS_EACH_TIME = GROUP_THREADS / PIECES,  /* that a group copies, a piece for each thread */
    READS_AHEAD = GROUPS != 2 /* where registers allow, what is read of a tile is on its way during the one before */
  };
  static_assert(ITEMS_EACH_TIME % 8 == 0, "the same permutation of pieces each time");
};

/* A group's current step: components from `component` on, of a tile of a set. After the last step, set >= n_sets. */
struct cursor {
  uint32_t set, tile, component;
};

static __host__ __device__ __forceinline__ unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Go on to the set's next tile, or to the first one of the next set. */
template <class S> static __device__ __forceinline__ void next_tile(struct cursor &at, const struct scan_range &range)
{
  at.component = 0;
  at.tile += range.n_sets;
  if (at.tile >= range.n_tiles) {
    at.set += gridDim.x * S::ITEM_WARPS;
    at.tile = at.set;
  }
}

template <class S>
static __device__ __forceinline__ void advance(struct cursor &at, const struct scan_range &range, uint32_t n_components)
{
  at.component += S::TOGETHER;
  if (at.component >= n_components)
    next_tile<S>(at, range);
}

static __device__ __forceinline__ size_t first_slot_of(const struct cursor &at, const struct scan_range &range)
{
  return (size_t)at.tile * range.stride * TILE;
}

/* Start to prefetch a step's items whose components are whole pieces. Each item's components lie one after another, and
 * so do their pieces; a thread copies one of every ITEMS_EACH_TIME-th item. The padding of rows is not written.
 *
 * from: the first number  n: components of the step */
template <class S>
static __device__ __forceinline__ void load_pieces(const struct mol_pairs_input &in, const struct scan_range &range,
                                                   const half_bits *from, uint32_t n, half_bits *stage)
{
  uint32_t thread = threadIdx.x % S::GROUP_THREADS, item = thread / S::PIECES, number = thread % S::PIECES * PIECE;
  uint32_t dim = (uint32_t)in.component_dim, component = number / dim, piece = (number - component * dim) / PIECE;

  if (component >= n)
    return;
  from += item * range.item_halves + number;
  stage += component * S::APART + place<S::ITEM / GROUP>(item, piece);
#pragma unroll
  for (uint32_t at = 0; at < TILE; at += S::ITEMS_EACH_TIME) {
    copy_async(stage + at * S::ITEM, from);
    from += S::ITEMS_EACH_TIME * range.item_halves;
  }
}

/* The same for items that are not aligned to pieces, at once. */
template <class S>
static __device__ void load_numbers(const struct mol_pairs_input &in, const struct scan_range &range,
                                    const half_bits *from, uint32_t n, half_bits *stage)
{
  uint32_t dim = (uint32_t)in.component_dim;

#pragma unroll 1
  for (uint32_t i = threadIdx.x % S::GROUP_THREADS; i < n * TILE * S::ITEM; i += S::GROUP_THREADS) {
    uint32_t k = i % S::ITEM, item = i / S::ITEM % TILE, c = i / S::ITEM / TILE;
    if (k < dim)
      stage[c * S::APART + place<S::ITEM / GROUP>(item, k / PIECE) + k % PIECE] =
          from[item * range.item_halves + c * dim + k];
  }
}

/* Start to prefetch a step's items, all items of the tile, whether they are there or not. Nothing after the last step.
 */
template <class S>
static __device__ __forceinline__ void load_step(const struct mol_pairs_input &in, const struct scan_range &range,
                                                 const struct cursor &at, half_bits *stage)
{
  uint32_t n = least((uint32_t)in.n_components - at.component, S::TOGETHER);
  const half_bits *from = in.halves.components + first_slot_of(at, range) * range.item_halves +
                          (in.first_component + at.component) * in.component_dim;

  if (at.set < range.n_sets && in.component_dim % PIECE == 0)
    load_pieces<S>(in, range, from, n, stage);
  else if (at.set < range.n_sets)
    load_numbers<S>(in, range, from, n, stage);
  copy_async_commit();
}

#endif
