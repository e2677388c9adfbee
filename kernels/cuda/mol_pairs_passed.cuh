/* SPDX-License-Identifier: Apache-2.0 */
/* Where the append scan of mol_pairs.cu puts the items that pass, on their way to the lists. */
#ifndef KERNELS_CUDA_MOL_PAIRS_PASSED_CUH
#define KERNELS_CUDA_MOL_PAIRS_PASSED_CUH

#include "kernels/cuda/append.cuh"

enum {
  PASSED_MAX = 128, /* entries in a warp's buffer */
  PASSED_BYTES = (PASSED_MAX * 3 + 1) * 4
};

/* A warp's buffer of entries that passed, in shared memory. It goes to the lists when it is half full, so the warp
 * waits once for many atomic operations. They are on many lists: counting the entries of each first would save none. */
struct passed_items {
  uint32_t *lists, *slots; /* [PASSED_MAX] */
  float *dots;             /* [PASSED_MAX]: estimates of the dot products */
  uint32_t *n;             /* entries that were offered; what has no room goes to the lists at once */
};

/* memory: PASSED_BYTES of shared memory, of this warp alone. */
static __device__ __forceinline__ struct passed_items open_passed(uint32_t *memory)
{
  struct passed_items passed = { memory, memory + PASSED_MAX, reinterpret_cast<float *>(memory + 2 * PASSED_MAX),
                                 memory + 3 * PASSED_MAX };

  if (warp_lane() == 0)
    *passed.n = 0;
  __syncwarp();
  return passed;
}

static __device__ void flush_passed(const struct passed_items &passed, const struct device_lists &lists)
{
  enum { EACH = PASSED_MAX / WARP_LANES };
  uint32_t n = *passed.n, at[EACH];

#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    unsigned entry = i * WARP_LANES + warp_lane();
    at[i] = entry < n ? atomicAdd(&lists.n[passed.lists[entry]], 1u) : 0;
  }
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    unsigned entry = i * WARP_LANES + warp_lane();
    if (entry < n && at[i] < lists.capacity) {
      lists.slots[passed.lists[entry] * lists.capacity + at[i]] = passed.slots[entry];
      lists.scores[passed.lists[entry] * lists.capacity + at[i]] = passed.dots[entry];
    }
  }
  __syncwarp();
  if (warp_lane() == 0)
    *passed.n = 0;
  __syncwarp();
}

/* Append one of a lane's items to a row's list. */
static __device__ __forceinline__ void add_passed(const struct passed_items &passed, const struct device_lists &lists,
                                                  uint32_t list, uint32_t slot, float dot)
{
  uint32_t at = atomicAdd(passed.n, 1u);

  if (at >= PASSED_MAX) {
    append(lists, list, slot, dot);
    return;
  }
  passed.lists[at] = list;
  passed.slots[at] = slot;
  passed.dots[at] = dot;
}

#endif
