/* SPDX-License-Identifier: Apache-2.0 */
/* Appending to lists (lists.h) from kernels. */
#ifndef KERNELS_CUDA_APPEND_CUH
#define KERNELS_CUDA_APPEND_CUH

#include "kernels/cuda/lists.h"
#include "kernels/cuda/warp.cuh"

/* One item, by one thread: for hits that are rare. */
static __device__ __forceinline__ void append(const struct device_lists &lists, size_t list, uint32_t slot, float score)
{
  uint32_t at = atomicAdd(&lists.n[list], 1u);

  if (at < lists.capacity) {
    lists.slots[list * lists.capacity + at] = slot;
    lists.scores[list * lists.capacity + at] = score;
  }
}

/* One item of each lane that is_hit, all to one list, by the whole warp: one atomic operation for all. */
static __device__ __forceinline__ void append_warp(const struct device_lists &lists, size_t list, bool is_hit,
                                                   uint32_t slot, float score)
{
  unsigned hits = __ballot_sync(WARP_ALL, is_hit), lane = warp_lane();
  uint32_t first = 0;

  if (hits == 0)
    return;
  if (lane == 0)
    first = atomicAdd(&lists.n[list], (uint32_t)__popc(hits));
  first = __shfl_sync(WARP_ALL, first, 0);
  uint32_t at = first + (uint32_t)__popc(hits & ((1u << lane) - 1));
  if (is_hit && at < lists.capacity) {
    lists.slots[list * lists.capacity + at] = slot;
    lists.scores[list * lists.capacity + at] = score;
  }
}

/* How many of the items that were offered to a list it has. */
static __device__ __forceinline__ uint32_t list_length(const struct device_lists &lists, size_t list)
{
  return lists.n[list] < lists.capacity ? lists.n[list] : (uint32_t)lists.capacity;
}

#endif
