/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between candidate lists (candidates.h), with a bit per slot against duplicates.
 *
 * The counters of all lists are close together, so atomic operations on them wait for each other. A block appends up to
 * PART entries with one such operation.
 */
#include "kernels/cuda/candidates.h"

#include "kernels/cuda/append.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP_LANES, EACH = 4 /* entries per thread */, PART = EACH * THREADS };

static const unsigned blocks_max = 32; /* per list */

/* The thread's entries of a part. */
struct entries {
  uint32_t slots[EACH];
  float scores[EACH];
  bool are_hits[EACH];
};

/* All reads are on their way at the same time. */
static __device__ __forceinline__ void load_entries(const struct device_lists &from, size_t list, uint32_t first,
                                                    uint32_t n, struct entries &out)
{
#pragma unroll
  for (uint32_t e = 0; e < EACH; e++) {
    uint32_t i = first + e * THREADS + threadIdx.x;
    size_t at = list * from.capacity + i;
    out.slots[e] = i < n ? from.slots[at] : 0;
    out.scores[e] = i < n ? from.scores[at] : -INFINITY;
  }
}

/* Set the bits of the hits. What had one already is no hit. */
static __device__ __forceinline__ void drop_seen(uint32_t *seen, struct entries &entries)
{
  uint32_t words[EACH];

#pragma unroll
  for (uint32_t e = 0; e < EACH; e++)
    words[e] = entries.are_hits[e] ? atomicOr(&seen[entries.slots[e] / 32], 1u << entries.slots[e] % 32) : 0;
#pragma unroll
  for (uint32_t e = 0; e < EACH; e++)
    entries.are_hits[e] = entries.are_hits[e] && !(words[e] >> entries.slots[e] % 32 & 1);
}

/* Return the index in the list where the warp's n hits begin. The whole block calls this. */
static __device__ __forceinline__ uint32_t reserve(uint32_t *n_entries, uint32_t n)
{
  uint32_t *counts = shared_memory<uint32_t>(), *begin = counts + WARPS, before = 0, all = 0;
  unsigned warp = threadIdx.x / WARP_LANES;

  if (warp_lane() == 0)
    counts[warp] = n;
  __syncthreads();
#pragma unroll
  for (unsigned w = 0; w < WARPS; w++) {
    before += w < warp ? counts[w] : 0;
    all += counts[w];
  }
  if (threadIdx.x == 0)
    *begin = all > 0 ? atomicAdd(n_entries, all) : 0;
  __syncthreads();
  return before + *begin; /* the next part writes counts after this barrier, and *begin after one more */
}

/* Append the block's hits. The whole block calls this. */
static __device__ __forceinline__ void append_hits(const struct device_lists &to, size_t list,
                                                   const struct entries &entries)
{
  uint32_t n = 0, places[EACH];

#pragma unroll
  for (uint32_t e = 0; e < EACH; e++) {
    unsigned hits = __ballot_sync(WARP_ALL, entries.are_hits[e]);
    places[e] = n + (uint32_t)__popc(hits & ((1u << warp_lane()) - 1));
    n += (uint32_t)__popc(hits);
  }
  uint32_t first = reserve(&to.n[list], n);
#pragma unroll
  for (uint32_t e = 0; e < EACH; e++) {
    size_t at = list * to.capacity + first + places[e];
    if (entries.are_hits[e] && first + places[e] < to.capacity) {
      to.slots[at] = entries.slots[e];
      to.scores[at] = entries.scores[e];
    }
  }
}

static __device__ __forceinline__ bool has_overflowed(const struct candidates_origins &origins, size_t list)
{
  bool result = false;

#pragma unroll
  for (int i = 0; i < CANDIDATES_ORIGINS; i++)
    result |= origins.n[i] && origins.n[i][list] > origins.capacity[i];
  return result;
}

static __global__ void __launch_bounds__(THREADS)
    add(struct device_lists from, const float *thresholds, uint32_t *seen, size_t n_words,
        struct candidates_origins origins, struct device_lists to)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t n = list_length(from, list);
  float least = thresholds ? thresholds[list] : -INFINITY;

  if (has_overflowed(origins, list)) { /* the same for all blocks of the list: none of them appends */
    if (blockIdx.x == 0 && threadIdx.x == 0)
      to.n[list] = LISTS_INVALID;
    return;
  }
  for (uint32_t first = blockIdx.x * PART; first < n; first += gridDim.x * PART) {
    struct entries entries;
    load_entries(from, list, first, n, entries);
#pragma unroll
    for (uint32_t e = 0; e < EACH; e++)
      entries.are_hits[e] = entries.scores[e] > -INFINITY && entries.scores[e] >= least;
    if (seen)
      drop_seen(seen + list * n_words, entries);
    append_hits(to, list, entries);
  }
}

err_code_t candidates_add(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                          uint32_t *seen, size_t n_words, const struct candidates_origins *origins,
                          const struct device_lists *to)
{
  unsigned n_blocks = blocks_for(from->capacity, PART);
  struct candidates_origins none = {};

  if (from->n_lists == 0 || n_blocks == 0)
    return ERR_OK;
  return launch(stream, dim3(n_blocks < blocks_max ? n_blocks : blocks_max, (unsigned)from->n_lists), THREADS,
                (WARPS + 1) * sizeof(uint32_t), add, *from, thresholds, seen, n_words, origins ? *origins : none, *to);
}
