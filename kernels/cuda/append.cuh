/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to device lists (lists.h) from inside kernels. */
#ifndef KERNELS_CUDA_APPEND_CUH
#define KERNELS_CUDA_APPEND_CUH

#include "kernels/cuda/lists.h"
#include "kernels/cuda/warp.cuh"

/* Append one item, by one thread. For rare hits. Returns the entry's index; at or above capacity the list was full. */
static __device__ __forceinline__ uint32_t append(const struct device_lists &lists, size_t list, uint32_t slot,
                                                  float score)
{
  uint32_t at = atomicAdd(&lists.n[list], 1u);

  if (at < lists.capacity) {
    lists.slots[list * lists.capacity + at] = slot;
    lists.scores[list * lists.capacity + at] = score;
  }
  return at;
}

/* Append the item of each lane with is_hit to the same list. The whole warp calls this; it takes one atomic operation.
 */
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

/* Number of entries of a list with room for `capacity`: n counts also those that were dropped because it was full. */
static __device__ __forceinline__ uint32_t stored_entries(uint32_t n, size_t capacity)
{
  return n == LISTS_INVALID ? 0 : n < capacity ? n : (uint32_t)capacity;
}

static __device__ __forceinline__ uint32_t list_length(const struct device_lists &lists, size_t list)
{
  return stored_entries(lists.n[list], lists.capacity);
}

#endif
