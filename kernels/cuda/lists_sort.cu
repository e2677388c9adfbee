/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts short device lists (lists.h). A block has one list in shared memory, and counts for each entry how many come
 * before it: few steps for the hits of a search, and no barriers between them. */
#include "kernels/cuda/append.cuh"

enum { THREADS = 256 };

/* A number that is lower for a better entry. Of equal scores, the lower slot comes first. */
static __device__ __forceinline__ uint64_t place_of(float score, uint32_t slot)
{
  uint32_t bits = __float_as_uint(score), falling = bits & 0x80000000u ? bits : ~(bits | 0x80000000u);

  return (uint64_t)falling << 32 | slot;
}

static __device__ __forceinline__ float score_at(uint64_t place)
{
  uint32_t falling = (uint32_t)(place >> 32);

  return __uint_as_float(falling & 0x80000000u ? falling : ~(falling | 0x80000000u));
}

static __global__ void __launch_bounds__(THREADS) sort(struct device_lists lists)
{
  begin_kernel();
  uint64_t *places = shared_memory<uint64_t>();
  uint32_t n = lists.n[blockIdx.x];
  uint32_t *slots = lists.slots + blockIdx.x * lists.capacity;
  float *scores = lists.scores + blockIdx.x * lists.capacity;

  if (n > LISTS_SORTED_MAX || n > lists.capacity)
    return;
  for (uint32_t i = threadIdx.x; i < n; i += THREADS)
    places[i] = place_of(scores[i], slots[i]);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
    uint64_t mine = places[i];
    uint32_t n_before = 0;
#pragma unroll 4
    for (uint32_t j = 0; j < n; j++)
      n_before += places[j] < mine;
    slots[n_before] = (uint32_t)mine;
    scores[n_before] = score_at(mine);
  }
}

err_code_t lists_sort(struct device_stream *stream, const struct device_lists *lists)
{
  if (lists->n_lists == 0)
    return ERR_OK;
  return launch(stream, (unsigned)lists->n_lists, THREADS, LISTS_SORTED_MAX * sizeof(uint64_t), sort, *lists);
}
