/* SPDX-License-Identifier: Apache-2.0 */
/* The rank-th largest of a list's scores, by selection, for kernels whose blocks select from one list at a time.
 *
 * A block selects among a list's keys. It counts them in bins by their distance from the largest key, narrow ones where
 * it is small, so the keys of the bin that it looks for are few. If they are not, it counts again within this bin. It
 * compares the last few with each other. */
#ifndef KERNELS_CUDA_LISTS_SELECT_CUH
#define KERNELS_CUDA_LISTS_SELECT_CUH

#include "kernels/cuda/append.cuh"

enum {
  FEW_KEYS = 4,      /* most lists have much more room than entries */
  LONG_KEYS = 24,    /* of a thread in registers */
  AT_A_TIME = 8,     /* ... and reads of others that are on their way at the same time */
  FRACTION_BITS = 4, /* a bin is at most this part of its distance wide */
  BINS = (32 - FRACTION_BITS + 1) << FRACTION_BITS,
  LANE_BINS = (BINS + WARP_LANES - 1) / WARP_LANES,
  NEAR = 1 << FRACTION_BITS, /* distances with a bin each */
  CANDIDATES = 128           /* that are compared with each other */
};

/* Where the rank-th key is: its bin, its rank among the keys there, and their number. */
struct place {
  uint32_t bin, rank, count;
};

/* What the threads of a block share. */
struct selection {
  uint32_t histogram[LANE_BINS * WARP_LANES];
  struct place place;
  uint32_t candidate; /* the one that was looked for */
  uint32_t n_candidates;
  uint32_t largest[WARP_LANES]; /* of each warp */
  uint32_t candidates[CANDIDATES];
};

/* Integer keys that sort like the scores; NaN sorts below everything. */
static __device__ __forceinline__ uint32_t key_of(float score)
{
  uint32_t bits = __float_as_uint(score);

  if (score != score)
    return 0;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ uint32_t warp_max_key(uint32_t key)
{
  for (int step = 16; step > 0; step /= 2) {
    uint32_t other = __shfl_xor_sync(WARP_ALL, key, step);
    key = other > key ? other : key;
  }
  return key;
}

static __device__ __forceinline__ float score_of(uint32_t key)
{
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* The keys of a list. A thread keeps up to KEYS of them in registers; what is left of longer lists is read anew each
 * time. */
template <int N_THREADS, int KEYS> struct keys {
  uint32_t mine[KEYS];
  const float *scores;
  uint32_t n;
};

/* NAN, which is below every score, beyond the end. */
template <int N_THREADS, int KEYS>
static __device__ __forceinline__ float score_at(const struct keys<N_THREADS, KEYS> &keys, uint32_t at)
{
  return at < keys.n ? keys.scores[at] : NAN;
}

/* All reads are on their way at the same time. */
template <int N_THREADS, int KEYS> static __device__ __forceinline__ void load_keys(struct keys<N_THREADS, KEYS> &keys)
{
  float scores[KEYS];

#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++) {
    if (i * N_THREADS >= keys.n)
      break;
    scores[i] = score_at(keys, i * N_THREADS + threadIdx.x);
  }
#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++) {
    if (i * N_THREADS >= keys.n)
      break;
    keys.mine[i] = key_of(scores[i]);
  }
}

/* Call visit(key) for each of the thread's keys. */
template <int N_THREADS, int KEYS, class VISIT>
static __device__ __forceinline__ void visit_keys(const struct keys<N_THREADS, KEYS> &keys, VISIT visit)
{
#pragma unroll
  for (uint32_t i = 0; i < KEYS; i++) {
    if (i * N_THREADS >= keys.n)
      break;
    visit(keys.mine[i]);
  }
  for (uint32_t first = KEYS * N_THREADS; first < keys.n; first += AT_A_TIME * N_THREADS) {
    float scores[AT_A_TIME];
#pragma unroll
    for (uint32_t i = 0; i < AT_A_TIME; i++)
      scores[i] = score_at(keys, first + i * N_THREADS + threadIdx.x);
#pragma unroll
    for (uint32_t i = 0; i < AT_A_TIME; i++)
      visit(key_of(scores[i]));
  }
}

/* The distances from `first` on, 2^bits of them. */
struct distances {
  uint32_t first, bits;
};

static __device__ __forceinline__ bool is_within(const struct distances &range, uint32_t distance)
{
  return (uint64_t)(distance - range.first) < (uint64_t)1 << range.bits;
}

/* The bin of a distance among all. */
static __device__ __forceinline__ uint32_t bin_of(uint32_t distance)
{
  uint32_t bits = 31 - __clz((int)(distance | NEAR)) - FRACTION_BITS;

  return (bits << FRACTION_BITS) + (distance >> bits);
}

static __device__ __forceinline__ struct distances distances_of(uint32_t bin)
{
  uint32_t bits = bin < 2 * NEAR ? 0 : bin / NEAR - 1;

  return { (bin - (bits << FRACTION_BITS)) << bits, bits };
}

/* The bits of a distance in a part of a range, which has up to 256 parts. */
static __device__ __forceinline__ uint32_t bits_of_part(const struct distances &range)
{
  return range.bits > 8 ? range.bits - 8 : 0;
}

/* Find the bin of the rank-th smallest distance. One warp. Each lane has some bins, lane 0 the first ones. A prefix sum
 * over the lanes shows where the rank falls. */
static __device__ void find_bin(struct selection &shared, uint32_t rank)
{
  uint32_t mine = 0, before, bin = warp_lane() * LANE_BINS;

  for (uint32_t i = 0; i < LANE_BINS; i++)
    mine += shared.histogram[bin + i];
  before = mine;
  for (int step = 1; step < WARP_LANES; step *= 2) {
    uint32_t other = __shfl_up_sync(WARP_ALL, before, step);
    before += warp_lane() >= (unsigned)step ? other : 0;
  }
  before -= mine;
  if (before < rank && rank <= before + mine) {
    while (before + shared.histogram[bin] < rank)
      before += shared.histogram[bin++];
    shared.place = { bin, rank - before, shared.histogram[bin] };
  }
}

/* The same for a block whose threads have counted their keys. */
static __device__ __forceinline__ struct place find_place(struct selection &shared, uint32_t rank)
{
  __syncthreads();
  if (threadIdx.x < WARP_LANES)
    find_bin(shared, rank);
  __syncthreads();
  return shared.place;
}

/* Clear the histogram. A barrier must follow. */
template <int N_THREADS> static __device__ __forceinline__ void clear_bins(struct selection &shared)
{
  for (uint32_t i = threadIdx.x; i < LANE_BINS * WARP_LANES; i += N_THREADS)
    shared.histogram[i] = 0;
}

/* Return the block's largest key, and clear the histogram. */
template <int N_THREADS, int KEYS>
static __device__ uint32_t find_largest(const struct keys<N_THREADS, KEYS> &keys, struct selection &shared)
{
  uint32_t largest = 0;

  visit_keys(keys, [&](uint32_t key) { largest = key > largest ? key : largest; });
  largest = warp_max_key(largest);
  clear_bins<N_THREADS>(shared);
  if (threadIdx.x == 0)
    shared.n_candidates = 0;
  if (warp_lane() == 0)
    shared.largest[threadIdx.x / WARP_LANES] = largest;
  __syncthreads();
  return warp_max_key(warp_lane() < N_THREADS / WARP_LANES ? shared.largest[warp_lane()] : 0);
}

/* Return the rank-th smallest of the distances within a range, of which there are `count`. */
template <int N_THREADS, int KEYS>
static __device__ uint32_t select_candidate(const struct keys<N_THREADS, KEYS> &keys, uint32_t largest,
                                            const struct distances &range, uint32_t rank, uint32_t count,
                                            struct selection &shared)
{
  visit_keys(keys, [&](uint32_t key) {
    if (is_within(range, largest - key))
      shared.candidates[atomicAdd(&shared.n_candidates, 1u)] = largest - key;
  });
  __syncthreads();
  if (threadIdx.x < count) {
    uint32_t mine = shared.candidates[threadIdx.x], n_before = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t other = shared.candidates[i];
      n_before += other < mine || (other == mine && i < threadIdx.x);
    }
    if (n_before == rank - 1)
      shared.candidate = mine;
  }
  __syncthreads();
  return shared.candidate;
}

/* Return the rank-th largest key. One block. */
template <int N_THREADS, int KEYS>
static __device__ uint32_t select_key(const struct keys<N_THREADS, KEYS> &keys, uint32_t rank, struct selection &shared)
{
  uint32_t largest = find_largest(keys, shared);

  static_assert((int)N_THREADS >= (int)CANDIDATES, "a thread for each candidate");
  visit_keys(keys, [&](uint32_t key) { atomicAdd(&shared.histogram[bin_of(largest - key)], 1u); });
  struct place at = find_place(shared, rank);
  struct distances range = distances_of(at.bin);
  while (range.bits > 0 && at.count > CANDIDATES) {
    uint32_t bits = bits_of_part(range);
    clear_bins<N_THREADS>(shared);
    __syncthreads();
    visit_keys(keys, [&](uint32_t key) {
      if (is_within(range, largest - key))
        atomicAdd(&shared.histogram[(largest - key - range.first) >> bits], 1u);
    });
    at = find_place(shared, at.rank);
    range = { range.first + (at.bin << bits), bits };
  }
  if (range.bits == 0)
    return largest - range.first; /* all keys of the bin are equal */
  return largest - select_candidate(keys, largest, range, at.rank, at.count, shared);
}

/* Return the rank-th largest of n scores. One block. */
template <int N_THREADS, int KEYS>
static __device__ float select_score(const float *scores, uint32_t n, uint32_t rank, struct selection &shared)
{
  struct keys<N_THREADS, KEYS> keys;

  keys.scores = scores;
  keys.n = n;
  load_keys(keys);
  return score_of(select_key(keys, rank, shared));
}

/* Return the rank-th largest of n scores; -inf if there are fewer, where NaN does not count. One block, with
 * sizeof(struct selection) bytes of shared memory; a barrier must precede another use of these. KEYS is for lists that
 * are long; FEW_KEYS serve short ones. */
template <int N_THREADS, int KEYS>
static __device__ float select_threshold(const float *scores, uint32_t n, uint32_t rank, struct selection &shared)
{
  float found = -INFINITY;

  if (rank <= n)
    found = KEYS == FEW_KEYS || n <= N_THREADS * FEW_KEYS ? select_score<N_THREADS, FEW_KEYS>(scores, n, rank, shared)
                                      : select_score<N_THREADS, KEYS>(scores, n, rank, shared);
  return found == found ? found : -INFINITY;
}

#endif
