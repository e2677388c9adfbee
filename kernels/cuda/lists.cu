/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds of device lists (lists.h) by radix selection, and copies of the entries that reach them. */
#include "kernels/cuda/append.cuh"

enum {
  THREADS = 512,
  SHORT_THREADS = 256, /* a block for each short list: many are selected at the same time */
  SHORT_KEYS = 16,
  LONG_THREADS = 1024,
  LONG_KEYS = 42, /* with the rest, all registers of a thread */
  FEW_KEYS = 4,   /* most lists have much more room than entries */
  DIGITS = 256,
  DIGIT_BITS = 8,
  KEY_BITS = 32
};

/* Integer keys that sort like the scores; NaN sorts below everything. */
static __device__ __forceinline__ uint32_t key_of(float score)
{
  uint32_t bits = __float_as_uint(score);

  if (score != score)
    return 0;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float score_of(uint32_t key)
{
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* The keys of a list. A thread keeps KEYS of them in registers; what is left of longer lists is read anew each time. */
template <int N_THREADS, int KEYS> struct keys {
  uint32_t mine[KEYS];
  const float *scores;
  uint32_t n;
};

/* All reads are on their way at the same time. */
template <int N_THREADS, int KEYS> static __device__ __forceinline__ void load_keys(struct keys<N_THREADS, KEYS> &keys)
{
  float scores[KEYS];

#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++) {
    uint32_t at = i * N_THREADS + threadIdx.x;
    scores[i] = at < keys.n ? keys.scores[at] : NAN; /* below every score */
  }
#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++)
    keys.mine[i] = key_of(scores[i]);
}

/* Count a digit of the keys that agree with `prefix` in the digits above it. */
static __device__ __forceinline__ void count(uint32_t key, uint32_t prefix, uint32_t above, int shift,
                                             uint32_t *histogram)
{
  if (((key ^ prefix) & above) == 0)
    atomicAdd(&histogram[key >> shift & (DIGITS - 1)], 1u);
}

template <int N_THREADS, int KEYS>
static __device__ __forceinline__ void count_keys(const struct keys<N_THREADS, KEYS> &keys, uint32_t prefix, int shift,
                                                  uint32_t *histogram)
{
  uint32_t above = shift == KEY_BITS - DIGIT_BITS ? 0 : ~0u << (shift + DIGIT_BITS);

#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++) {
    if (i * N_THREADS >= keys.n)
      break;
    count(keys.mine[i], prefix, above, shift, histogram);
  }
  for (uint32_t at = KEYS * N_THREADS + threadIdx.x; at < keys.n; at += N_THREADS)
    count(key_of(keys.scores[at]), prefix, above, shift, histogram);
}

/* Find the digit of the rank-th largest of the keys that were counted, and the rank among those that have the digit.
 * One warp. Each lane has eight digits, lane 0 the highest. A prefix sum over the lanes shows where the rank falls. */
static __device__ void find_digit(const uint32_t *histogram, uint32_t rank, uint32_t *chosen)
{
  uint32_t mine = 0, before, digit = DIGITS - 1 - warp_lane() * (DIGITS / WARP_LANES);

  for (uint32_t i = 0; i < DIGITS / WARP_LANES; i++)
    mine += histogram[digit - i];
  before = mine;
  for (int step = 1; step < WARP_LANES; step *= 2) {
    uint32_t other = __shfl_up_sync(WARP_ALL, before, step);
    before += warp_lane() >= (unsigned)step ? other : 0;
  }
  before -= mine;
  if (before < rank && rank <= before + mine) {
    while (before + histogram[digit] < rank)
      before += histogram[digit--];
    chosen[0] = digit;
    chosen[1] = rank - before;
  }
}

/* Return the rank-th largest key. Each round counts one digit, from the highest on, and then keeps only the keys that
 * share the digit found. One block. */
template <int N_THREADS, int KEYS>
static __device__ uint32_t select_key(const struct keys<N_THREADS, KEYS> &keys, uint32_t rank, uint32_t *histogram)
{
  uint32_t *chosen = histogram + DIGITS, prefix = 0;

  for (int shift = KEY_BITS - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
    if (threadIdx.x < DIGITS) /* a block has at least as many threads */
      histogram[threadIdx.x] = 0;
    __syncthreads();
    count_keys(keys, prefix, shift, histogram);
    __syncthreads();
    if (threadIdx.x < WARP_LANES)
      find_digit(histogram, rank, chosen);
    __syncthreads();
    prefix |= chosen[0] << shift;
    rank = chosen[1];
  }
  return prefix;
}

/* Return the rank-th largest of n scores. One block. */
template <int N_THREADS, int KEYS> static __device__ float select_score(const float *scores, uint32_t n, uint32_t rank)
{
  struct keys<N_THREADS, KEYS> keys;

  keys.scores = scores;
  keys.n = n;
  load_keys(keys);
  return score_of(select_key(keys, rank, shared_memory<uint32_t>()));
}

/* One block per list. n is NULL if every list has `length` entries. */
template <int N_THREADS, int KEYS>
static __global__ void __launch_bounds__(N_THREADS, 1)
    threshold(const float *scores, size_t stride, const uint32_t *n, uint32_t length, struct lists_ranks ranks,
              float *thresholds)
{
  begin_kernel();
  uint32_t list = blockIdx.x, rank = ranks.more + (ranks.of ? ranks.of[list] : 0);
  uint32_t n_scores = n ? stored_entries(n[list], length) : length;
  float found = -INFINITY;

  scores += list * stride;
  if (rank <= n_scores)
    found = n_scores <= N_THREADS * FEW_KEYS ? select_score<N_THREADS, FEW_KEYS>(scores, n_scores, rank)
                                             : select_score<N_THREADS, KEYS>(scores, n_scores, rank);
  if (found != found)
    found = -INFINITY;
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

static err_code_t find_thresholds(struct device_stream *stream, const float *scores, size_t n_lists, size_t stride,
                                  const uint32_t *n, struct lists_ranks ranks, float *thresholds)
{
  if (n_lists == 0)
    return ERR_OK;
  bool is_short = stride <= (size_t)SHORT_THREADS * SHORT_KEYS;
  return launch(stream, (unsigned)n_lists, is_short ? SHORT_THREADS : LONG_THREADS, (DIGITS + 2) * sizeof(uint32_t),
                is_short ? threshold<SHORT_THREADS, SHORT_KEYS> : threshold<LONG_THREADS, LONG_KEYS>, scores, stride, n,
                (uint32_t)stride, ranks, thresholds);
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
