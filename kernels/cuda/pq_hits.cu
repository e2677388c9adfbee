/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of pq_hits.h. It is one kernel because with short lists its parts take less time than to begin and end
 * a kernel for each. A block does all for its list, so nothing has to wait for other blocks. */
#include "kernels/cuda/pq_hits.h"

#include "kernels/cuda/lists_select.cuh"
#include "kernels/cuda/pq_packed.h"

enum {
  THREADS = 512,
  SUBITEMS = 256,
  SPLITS = PQ_PACKED_SPLITS,
  IN_FLIGHT = 4 /* entries of a thread whose reads are on their way at the same time */
};

struct hits_memory {
  float tables[SPLITS][SUBITEMS];
  struct selection selection;
  uint32_t n_hits;
};

/* One list, in device memory. */
struct list {
  uint32_t *slots;
  float *scores;
  uint32_t n;
};

/* Begin to copy a query's scores of sub-items to shared memory. */
static __device__ __forceinline__ void copy_tables(const float *from, struct hits_memory *memory)
{
  for (unsigned i = threadIdx.x * 4; i < SPLITS * SUBITEMS; i += THREADS * 4)
    copy_async(&memory->tables[0][0] + i, from + i);
  copy_async_commit();
}

/* Read the codes of the thread's entries from `first` on. */
static __device__ __forceinline__ void load_codes(const uint8_t *rows, const struct list &list, uint32_t first,
                                                  uint2 (&codes)[IN_FLIGHT])
{
  uint32_t slots[IN_FLIGHT];

#pragma unroll
  for (uint32_t i = 0; i < IN_FLIGHT; i++)
    slots[i] = first + i * THREADS < list.n ? list.slots[first + i * THREADS] : 0;
#pragma unroll
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    if (first + i * THREADS < list.n)
      codes[i] = reinterpret_cast<const uint2 *>(rows)[slots[i]];
  }
}

/* Compute equation 5 of the RecJPQPrune paper, in the order of the splits. */
static __device__ __forceinline__ float score_item(const struct hits_memory *memory, uint2 codes)
{
  float score = memory->tables[0][codes.x & 0xff];

#pragma unroll
  for (int m = 1; m < SPLITS; m++)
    score += memory->tables[m][(m < 4 ? codes.x : codes.y) >> m % 4 * 8 & 0xff];
  return score;
}

/* Score all entries. The tables may still be on their way. */
static __device__ __forceinline__ void score_entries(const uint8_t *rows, const struct list &list,
                                                     const struct hits_memory *memory)
{
  uint2 codes[IN_FLIGHT];

  load_codes(rows, list, threadIdx.x, codes);
  copy_async_wait<0>();
  __syncthreads();
  for (uint32_t first = threadIdx.x; first < list.n; first += IN_FLIGHT * THREADS) {
    if (first >= IN_FLIGHT * THREADS)
      load_codes(rows, list, first, codes);
#pragma unroll
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
      if (first + i * THREADS < list.n)
        list.scores[first + i * THREADS] = score_item(memory, codes[i]);
    }
  }
}

/* Copy the entries that score at least `least`. Each thread reads scores that it wrote itself. */
static __device__ __forceinline__ void keep(const struct list &list, float least, const struct device_lists &hits,
                                            struct hits_memory *memory)
{
  size_t first = blockIdx.x * hits.capacity;

  for (uint32_t i = threadIdx.x; i < list.n; i += THREADS) {
    float score = list.scores[i];
    if (!(score >= least))
      continue;
    uint32_t at = atomicAdd(&memory->n_hits, 1u);
    if (at < hits.capacity) {
      hits.slots[first + at] = list.slots[i];
      hits.scores[first + at] = score;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0)
    hits.n[blockIdx.x] = memory->n_hits;
}

static __global__ void __launch_bounds__(THREADS, 1)
    find_hits(struct pq_scan_input in, struct device_lists lists, struct lists_ranks ranks, float *thresholds,
              struct device_lists hits, uint32_t *n_listed)
{
  begin_kernel();
  struct hits_memory *memory = shared_memory<struct hits_memory>();
  size_t query = blockIdx.x, first = query * lists.capacity;

  copy_tables(in.subitem_scores + query * SPLITS * SUBITEMS, memory);
  struct list list = { lists.slots + first, lists.scores + first, list_length(lists, query) };
  uint32_t rank = ranks.more + (ranks.of ? ranks.of[query] : 0);
  if (threadIdx.x == 0)
    memory->n_hits = 0;
  score_entries(in.rows.bytes, list, memory);
  __syncthreads();
  float least = select_threshold<THREADS, LONG_KEYS>(list.scores, list.n, rank, memory->selection);
  if (threadIdx.x == 0) {
    thresholds[query] = least;
    if (n_listed)
      n_listed[query] = lists.n[query];
  }
  keep(list, least, hits, memory);
}

err_code_t pq_hits_find(struct device_stream *stream, const struct pq_scan_input *input,
                        const struct device_lists *lists, struct lists_ranks ranks, float *thresholds,
                        const struct device_lists *hits, uint32_t *n_listed)
{
  if (lists->n_lists == 0)
    return ERR_OK;
  return launch(stream, (unsigned)lists->n_lists, THREADS, sizeof(struct hits_memory), find_hits, *input, *lists, ranks,
                thresholds, *hits, n_listed);
}
