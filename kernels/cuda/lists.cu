/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds of device lists (lists.h), and copies of the entries that reach them. */
#include "kernels/cuda/lists_select.cuh"

enum {
  THREADS = 512,
  SHORT_THREADS = 256, /* for lists that have room for SHORT_KEYS of each thread */
  SHORT_KEYS = 16,
  MANY_LISTS = 512, /* with more of them that are no longer, their number matters more than how fast one is */
  MANY_THREADS = 128,
  MANY_KEYS = 8,
  LONG_THREADS = 1024
};

/* One block per list. n is NULL if every list has `length` entries. */
template <int N_THREADS, int KEYS>
static __global__ void __launch_bounds__(N_THREADS, 1)
    threshold(const float *scores, size_t stride, const uint32_t *n, uint32_t length, struct lists_ranks ranks,
              float *thresholds)
{
  begin_kernel();
  uint32_t list = blockIdx.x, rank = ranks.more + (ranks.of ? ranks.of[list] : 0);
  float found = select_threshold<N_THREADS, KEYS>(scores + list * stride, n ? stored_entries(n[list], length) : length,
                                                  rank, *shared_memory<struct selection>());

  if (threadIdx.x == 0)
    thresholds[list] = found;
}

static __global__ void __launch_bounds__(THREADS)
    keep(struct device_lists from, const float *thresholds, struct device_lists to)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t n = list_length(from, list);
  float least = thresholds[list];

  for (uint32_t first = blockIdx.x * THREADS; first < n; first += gridDim.x * THREADS) {
    uint32_t i = first + threadIdx.x;
    bool is_in = i < n;
    float score = is_in ? from.scores[list * from.capacity + i] : -INFINITY;
    uint32_t slot = is_in ? from.slots[list * from.capacity + i] : 0;
    append_warp(to, list, is_in && score >= least, slot, score);
  }
}

static __global__ void __launch_bounds__(THREADS) raise(float *floors, const float *others, size_t n)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (i < n && others[i] > floors[i])
    floors[i] = others[i];
}

err_code_t lists_raise(struct device_stream *stream, float *floors, const float *others, size_t n)
{
  return n == 0 ? ERR_OK : launch(stream, blocks_for(n, THREADS), THREADS, 0, raise, floors, others, n);
}

err_code_t lists_clear(struct device_stream *stream, const struct device_lists *lists)
{
  return device_fill(stream, lists->n, 0, lists->n_lists * sizeof *lists->n);
}

/* A block selects from one list. What the arguments are, threshold() says. */
template <int N_THREADS, int KEYS>
static err_code_t select_from(struct device_stream *stream, const float *scores, size_t n_lists, size_t stride,
                              const uint32_t *n, struct lists_ranks ranks, float *thresholds)
{
  return launch(stream, (unsigned)n_lists, N_THREADS, sizeof(struct selection), threshold<N_THREADS, KEYS>, scores,
                stride, n, (uint32_t)stride, ranks, thresholds);
}

static err_code_t find_thresholds(struct device_stream *stream, const float *scores, size_t n_lists, size_t stride,
                                  const uint32_t *n, struct lists_ranks ranks, float *thresholds)
{
  if (n_lists == 0)
    return ERR_OK;
  if (stride > (size_t)SHORT_THREADS * SHORT_KEYS)
    return select_from<LONG_THREADS, LONG_KEYS>(stream, scores, n_lists, stride, n, ranks, thresholds);
  if (n_lists > MANY_LISTS)
    return select_from<MANY_THREADS, MANY_KEYS>(stream, scores, n_lists, stride, n, ranks, thresholds);
  return select_from<SHORT_THREADS, SHORT_KEYS>(stream, scores, n_lists, stride, n, ranks, thresholds);
}

err_code_t lists_threshold(struct device_stream *stream, const struct device_lists *lists, struct lists_ranks ranks,
                           float *thresholds)
{
  return find_thresholds(stream, lists->scores, lists->n_lists, lists->capacity, lists->n, ranks, thresholds);
}

err_code_t lists_threshold_of(struct device_stream *stream, const float *scores, size_t n_lists, size_t n,
                              struct lists_ranks ranks, float *thresholds)
{
  return find_thresholds(stream, scores, n_lists, n, NULL, ranks, thresholds);
}

/* Most lists are short, so each gets few blocks. The blocks loop over what is left of a long list. */
err_code_t lists_keep(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                      const struct device_lists *to)
{
  unsigned n_blocks = blocks_for(from->capacity, 4 * THREADS);

  if (n_blocks == 0 || from->n_lists == 0)
    return ERR_OK;
  if (n_blocks > 16)
    n_blocks = 16;
  return launch(stream, dim3(n_blocks, (unsigned)from->n_lists), THREADS, 0, keep, *from, thresholds, *to);
}
