/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of admitted.h. A thread takes a word, and a warp appends the slots of its words with one atomic operation.
 */
#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"

enum { THREADS = 256, BLOCKS_MAX = 128 /* per query */ };

/* The sum of n over the lanes before this one; the last lane also gets the sum of all in `total`. */
static __device__ __forceinline__ uint32_t sum_before(uint32_t n, uint32_t *total)
{
  uint32_t sum = n;

  for (int step = 1; step < WARP_LANES; step *= 2) {
    uint32_t other = __shfl_up_sync(WARP_ALL, sum, step);
    sum += warp_lane() >= (unsigned)step ? other : 0;
  }
  *total = __shfl_sync(WARP_ALL, sum, WARP_LANES - 1);
  return sum - n;
}

/* Append the slots of the lane's word. The whole warp calls this. */
static __device__ __forceinline__ void append_word(const struct device_lists &lists, size_t list, uint64_t word,
                                                   uint32_t first_slot)
{
  uint32_t total, at = sum_before((uint32_t)__popcll(word), &total), first = 0;

  if (total == 0)
    return;
  if (warp_lane() == 0)
    first = atomicAdd(&lists.n[list], total);
  at += __shfl_sync(WARP_ALL, first, 0);
  for (; word && at < lists.capacity; word &= word - 1, at++)
    lists.slots[list * lists.capacity + at] = first_slot + (uint32_t)__ffsll((long long)word) - 1;
}

/* Bits from `end` on are dropped. */
static __global__ void __launch_bounds__(THREADS)
    append_words(struct admitted_words admitted, size_t first, size_t end, struct device_lists lists)
{
  begin_kernel();
  size_t list = blockIdx.y, n_words = (end + ADMITTED_SLOTS - 1) / ADMITTED_SLOTS;
  const uint64_t *words = admitted.of[list];

  for (size_t from = first / ADMITTED_SLOTS + (size_t)blockIdx.x * THREADS; from < n_words;
       from += (size_t)gridDim.x * THREADS) {
    size_t w = from + threadIdx.x;
    uint64_t word = w < n_words ? words[w] : 0;
    if ((w + 1) * ADMITTED_SLOTS > end && w < n_words && end % ADMITTED_SLOTS)
      word &= ((uint64_t)1 << end % ADMITTED_SLOTS) - 1;
    append_word(lists, list, word, (uint32_t)(w * ADMITTED_SLOTS));
  }
}

err_code_t admitted_append(struct device_stream *stream, const struct admitted_words *admitted, size_t first, size_t n,
                           const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(n, (size_t)THREADS * ADMITTED_SLOTS);

  if (n == 0 || lists->n_lists == 0)
    return ERR_OK;
  if (n_blocks > BLOCKS_MAX)
    n_blocks = BLOCKS_MAX;
  return launch(stream, dim3(n_blocks, (unsigned)lists->n_lists), THREADS, 0, append_words, *admitted, first, first + n,
                *lists);
}
