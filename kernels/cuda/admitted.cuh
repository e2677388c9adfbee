/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' tests whether a query admits an item (admitted.h). Without words they are one branch, the same for the
 * whole grid. */
#ifndef KERNELS_CUDA_ADMITTED_CUH
#define KERNELS_CUDA_ADMITTED_CUH

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/warp.cuh"

enum { ADMITTED_SLOTS = 64 /* of a word */ };

static __device__ __forceinline__ bool is_admitted(const struct admitted_words &admitted, size_t query, uint32_t slot)
{
  const uint64_t *words = admitted.of ? admitted.of[query] : NULL;

  return !words || (words[slot / ADMITTED_SLOTS] >> slot % ADMITTED_SLOTS & 1);
}

/* The bits of the slots from `first` on, as many as lie in the same word and in the result. Some query has words. */
static __device__ __forceinline__ uint32_t admitted_bits(const struct admitted_words &admitted, size_t query,
                                                         uint32_t first)
{
  const uint64_t *words = admitted.of[query];

  return words ? (uint32_t)(words[first / ADMITTED_SLOTS] >> first % ADMITTED_SLOTS) : ~0u;
}

/* Does any of the n queries from `first` on admit a slot of the tile that begins at `slot`, a multiple of 64? The whole
 * warp calls this. n is at most WARP_LANES. */
static __device__ __forceinline__ bool is_tile_admitted(const struct admitted_words &admitted, size_t first, size_t n,
                                                        size_t slot)
{
  bool is_mine = false;

  if (!admitted.of)
    return true;
  if (warp_lane() < n) {
    const uint64_t *words = admitted.of[first + warp_lane()];
    is_mine = !words || words[slot / ADMITTED_SLOTS] != 0;
  }
  return __any_sync(WARP_ALL, is_mine);
}

#endif
