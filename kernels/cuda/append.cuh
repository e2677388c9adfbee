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

/* A warp's buffer of entries for up to WARP_LANES lists, in shared memory. A full buffer goes to the lists with one
 * atomic operation for each list, all at the same time: so the warp waits once for many entries. Scores are not
 * written. */
enum { APPEND_BUFFER = 128, APPEND_BUFFER_BYTES = (2 * APPEND_BUFFER + WARP_LANES) * 4 };

struct append_buffer {
  uint32_t n;        /* entries; the same in all lanes */
  uint32_t *slots;   /* [APPEND_BUFFER] */
  uint32_t *places;  /* [APPEND_BUFFER]: the list's place among the warp's lists */
  uint32_t *lengths; /* [WARP_LANES] */
};

/* memory: APPEND_BUFFER_BYTES of shared memory, of this warp alone. */
static __device__ __forceinline__ struct append_buffer append_buffer_open(uint32_t *memory)
{
  return { 0, memory, memory + APPEND_BUFFER, memory + 2 * APPEND_BUFFER };
}

/* Append all entries to the lists from first_list on. The whole warp calls this and the next function. */
static __device__ void append_buffer_flush(struct append_buffer &buffer, const struct device_lists &lists,
                                           size_t first_list)
{
  enum { EACH = APPEND_BUFFER / WARP_LANES };
  unsigned lane = warp_lane();
  uint32_t ranks[EACH];

  buffer.lengths[lane] = 0;
  __syncwarp();
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    if (i * WARP_LANES + lane < buffer.n)
      ranks[i] = atomicAdd(&buffer.lengths[buffer.places[i * WARP_LANES + lane]], 1u);
  }
  __syncwarp();
  uint32_t length = buffer.lengths[lane];
  if (length > 0)
    length = atomicAdd(&lists.n[first_list + lane], length);
  buffer.lengths[lane] = length;
  __syncwarp();
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    if (i * WARP_LANES + lane < buffer.n) {
      uint32_t place = buffer.places[i * WARP_LANES + lane], at = buffer.lengths[place] + ranks[i];
      if (at < lists.capacity)
        lists.slots[(first_list + place) * lists.capacity + at] = buffer.slots[i * WARP_LANES + lane];
    }
  }
  __syncwarp();
  buffer.n = 0;
}

/* Append the entry of each lane with is_hit. */
static __device__ __forceinline__ void append_buffer_push(struct append_buffer &buffer,
                                                          const struct device_lists &lists, size_t first_list,
                                                          bool is_hit, unsigned place, uint32_t slot)
{
  unsigned hits = __ballot_sync(WARP_ALL, is_hit);

  if (buffer.n + (uint32_t)__popc(hits) > APPEND_BUFFER)
    append_buffer_flush(buffer, lists, first_list);
  if (is_hit) {
    uint32_t at = buffer.n + (uint32_t)__popc(hits & ((1u << warp_lane()) - 1));
    buffer.slots[at] = slot;
    buffer.places[at] = place;
  }
  buffer.n += (uint32_t)__popc(hits);
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
