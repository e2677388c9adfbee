/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between candidate lists (candidates.h): a thread per entry, a bit per slot against duplicates. */
#include "kernels/cuda/candidates.h"

#include "kernels/cuda/append.cuh"

enum { THREADS = 256 };

static const unsigned blocks_max = 32; /* per list */

static __device__ __forceinline__ bool is_new(uint32_t *seen, uint32_t slot)
{
  uint32_t bit = 1u << slot % 32;

  return !(atomicOr(&seen[slot / 32], bit) & bit);
}

static __global__ void __launch_bounds__(THREADS)
    add(struct device_lists from, const float *thresholds, uint32_t *seen, size_t n_words, struct device_lists to)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t n = list_length(from, list);
  float least = thresholds ? thresholds[list] : -INFINITY;

  for (uint32_t first = blockIdx.x * THREADS; first < n; first += gridDim.x * THREADS) {
    uint32_t i = first + threadIdx.x, slot = 0;
    float score = -INFINITY;
    if (i < n) {
      slot = from.slots[list * from.capacity + i];
      score = from.scores[list * from.capacity + i];
    }
    bool is_hit = score > -INFINITY && score >= least;
    if (is_hit && seen)
      is_hit = is_new(seen + list * n_words, slot);
    append_warp(to, list, is_hit, slot, score);
  }
}

static __global__ void __launch_bounds__(THREADS) copy_overflow(struct device_lists from, struct device_lists to)
{
  begin_kernel();
  size_t list = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (list < from.n_lists && from.n[list] > from.capacity)
    to.n[list] = LISTS_INVALID;
}

err_code_t candidates_add(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                          uint32_t *seen, size_t n_words, const struct device_lists *to)
{
  unsigned n_blocks = blocks_for(from->capacity, 2 * THREADS);

  if (from->n_lists == 0 || n_blocks == 0)
    return ERR_OK;
  return launch(stream, dim3(n_blocks < blocks_max ? n_blocks : blocks_max, (unsigned)from->n_lists), THREADS, 0, add,
                *from, thresholds, seen, n_words, *to);
}

err_code_t candidates_copy_overflow(struct device_stream *stream, const struct device_lists *from,
                                    const struct device_lists *to)
{
  unsigned n_blocks = blocks_for(from->n_lists, THREADS);

  return n_blocks ? launch(stream, n_blocks, THREADS, 0, copy_overflow, *from, *to) : ERR_OK;
}
