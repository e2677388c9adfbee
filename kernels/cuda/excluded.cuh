/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' test whether a query excludes an item (candidates.h), by binary search. */
#ifndef KERNELS_CUDA_EXCLUDED_CUH
#define KERNELS_CUDA_EXCLUDED_CUH

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/launch.cuh"

static __device__ __forceinline__ bool is_excluded(const struct candidates_excluded &excluded, size_t query,
                                                   uint32_t slot)
{
  if (!excluded.firsts)
    return false;
  uint32_t low = excluded.firsts[query], high = excluded.firsts[query + 1], end = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (excluded.slots[middle] < slot)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && excluded.slots[low] == slot;
}

#endif
