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
 * atomic operation for each list, all at the same time: so the warp waits once for many entries. The last ones of all
 * warps of a block go together. Scores are not written. */
enum { APPEND_BUFFER = 256, APPEND_EACH = APPEND_BUFFER / WARP_LANES, APPEND_BUFFER_BYTES = APPEND_BUFFER * 8 + 128 };

static_assert(APPEND_BUFFER_BYTES == APPEND_BUFFER * sizeof(uint2) + WARP_LANES * sizeof(uint32_t), "entries, lengths");

struct append_buffer {
  uint32_t n;        /* entries; the same in all lanes */
  uint2 *entries;    /* [APPEND_BUFFER]: the slot, and the list's place among the warp's lists */
  uint32_t *lengths; /* [WARP_LANES]: of what goes to the lists */
};

/* memory: APPEND_BUFFER_BYTES of shared memory, aligned to 8 bytes, of this warp alone. */
static __device__ __forceinline__ struct append_buffer append_buffer_open(uint8_t *memory)
{
  uint2 *entries = reinterpret_cast<uint2 *>(memory);

  return { 0, entries, reinterpret_cast<uint32_t *>(entries + APPEND_BUFFER) };
}

template <bool IS_BLOCK> static __device__ __forceinline__ void append_buffer_sync()
{
  if (IS_BLOCK)
    __syncthreads();
  else
    __syncwarp();
}

/* Append all entries to the lists from first_list on. The whole warp calls this; with IS_BLOCK the whole block, with
 * the same first_list, and all give the lengths of the first warp's buffer. */
template <bool IS_BLOCK>
static __device__ __forceinline__ void append_buffer_flush(struct append_buffer &buffer, uint32_t *lengths,
                                                           const struct device_lists &lists, size_t first_list)
{
  bool is_first = !IS_BLOCK || threadIdx.x < WARP_LANES;
  unsigned lane = warp_lane();
  uint32_t ranks[APPEND_EACH];

  if (is_first)
    lengths[lane] = 0;
  append_buffer_sync<IS_BLOCK>();
#pragma unroll
  for (unsigned i = 0; i < APPEND_EACH; i++) {
    if (i * WARP_LANES + lane < buffer.n)
      ranks[i] = atomicAdd(&lengths[buffer.entries[i * WARP_LANES + lane].y], 1u);
  }
  append_buffer_sync<IS_BLOCK>();
  if (is_first) {
    uint32_t length = lengths[lane];
    if (length > 0)
      lengths[lane] = atomicAdd(&lists.n[first_list + lane], length);
  }
  append_buffer_sync<IS_BLOCK>();
#pragma unroll
  for (unsigned i = 0; i < APPEND_EACH; i++) {
    if (i * WARP_LANES + lane < buffer.n) {
      uint2 entry = buffer.entries[i * WARP_LANES + lane];
      uint32_t at = lengths[entry.y] + ranks[i];
      if (at < lists.capacity)
        lists.slots[(first_list + entry.y) * lists.capacity + at] = entry.x;
    }
  }
  append_buffer_sync<IS_BLOCK>();
  buffer.n = 0;
}

/* Make room for n entries of each lane, which may have different numbers of at most APPEND_EACH. Returns the index of
 * the lane's first one; the lane writes them. The whole warp calls this. */
static __device__ __forceinline__ uint32_t append_buffer_reserve(struct append_buffer &buffer,
                                                                 const struct device_lists &lists, size_t first_list,
                                                                 uint32_t n)
{
  uint32_t end = n;

#pragma unroll
  for (unsigned step = 1; step < WARP_LANES; step *= 2) {
    uint32_t before = __shfl_up_sync(WARP_ALL, end, step);
    end += warp_lane() >= step ? before : 0;
  }
  uint32_t all = __shfl_sync(WARP_ALL, end, WARP_LANES - 1);
  if (buffer.n + all > APPEND_BUFFER)
    append_buffer_flush<false>(buffer, buffer.lengths, lists, first_list);
  uint32_t first = buffer.n + end - n;
  buffer.n += all;
  return first;
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
