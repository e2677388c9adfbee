/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of planted_faults.h. */
#include "tests/gpu/planted_faults.h"

#include "kernels/cuda/warpgroup.cuh"

enum { N = 256, THREADS = 128, BLOCKS = 4, HALVES = 2, MATRICES = 4, ONE = 0x3c00 };

struct shared {
  uint32_t numbers[N];
  uint32_t sums[THREADS / WARP_LANES];
  uint32_t lanes[THREADS];
  uint32_t extra;
  alignas(16) half_bits ones[MATRICES * 2 * MATRIX_HALVES];
};

/* Copy the input to shared memory, in two groups of asynchronous copies. */
static __device__ void load(enum planted_fault fault, const uint32_t *in, struct shared *s)
{
  unsigned t = threadIdx.x;

  for (unsigned half = 0; half < HALVES; half++) {
    if (t < N / 4 / HALVES) {
      unsigned at = half * (N / HALVES) + 4 * t;
      copy_async(s->numbers + at, in + at + (fault == PLANTED_MISALIGNED_COPY && t == 7));
    }
    copy_async_commit();
  }
  if (fault == PLANTED_WAIT_FOR_OLDER)
    copy_async_wait<1>();
  else if (fault != PLANTED_NO_WAIT && fault != PLANTED_NEVER_WAIT)
    copy_async_wait<0>();
  __syncthreads();
}

/* Sum up the block's numbers. Each warp reads all, in another order. */
static __device__ uint32_t sum_of(enum planted_fault fault, struct shared *s)
{
  unsigned t = threadIdx.x, warp = t / WARP_LANES;
  uint32_t sum = 0;

  for (unsigned i = 0; i < N / THREADS; i++)
    sum += s->numbers[i * THREADS + t];
  s->lanes[t] = sum;
  if (fault == PLANTED_NO_SYNCWARP)
    __ballot_sync(WARP_ALL, 1);
  else
    __syncwarp();
  if (t % WARP_LANES == 0) {
    sum = 0;
    for (unsigned i = 0; i < WARP_LANES; i++)
      sum += s->lanes[t + i];
    s->sums[warp] = sum;
  }
  if (fault == PLANTED_GROUP_SYNC)
    group_sync<THREADS / 2>();
  else if (fault != PLANTED_NO_SYNCTHREADS)
    __syncthreads();
  sum = 0;
  for (unsigned i = 0; i < THREADS / WARP_LANES; i++)
    sum += s->sums[i];
  if (fault != PLANTED_EARLY_REUSE)
    __syncthreads();
  if (t % WARP_LANES == 0)
    s->sums[warp] = 0;
  return sum;
}

/* Multiply ones by ones. Returns 0 if each sum is 16. */
static __device__ uint32_t multiply_ones(enum planted_fault fault, struct shared *s)
{
  const uint32_t a[4] = { ONE * 0x10001, ONE * 0x10001, ONE * 0x10001, ONE * 0x10001 };
  float sums[MATRICES][4] = {};
  uint32_t n_wrong = 0;

  for (unsigned i = threadIdx.x; i < MATRICES * 2 * MATRIX_HALVES; i += THREADS)
    s->ones[i] = ONE;
  warpgroup_publish();
  __syncthreads();
  if (fault == PLANTED_WARP_MISSING && threadIdx.x < WARP_LANES)
    return 0;
  warpgroup_begin();
  warpgroup_add(sums, a, s->ones, 0);
  warpgroup_commit();
  if (fault != PLANTED_NO_PRODUCT_WAIT && fault != PLANTED_NEVER_PRODUCT_WAIT)
    warpgroup_wait(0, sums);
  for (unsigned i = 0; i < MATRICES * 4; i++)
    n_wrong += sums[i / 4][i % 4] != 16;
  if (fault == PLANTED_NO_PRODUCT_WAIT)
    warpgroup_wait(0, sums);
  return n_wrong;
}

static __global__ void add_up(enum planted_fault fault, const uint32_t *in, uint32_t *out)
{
  uint32_t early = fault == PLANTED_LATE_BEGIN ? in[0] : 0;
  if (fault != PLANTED_NO_BEGIN)
    begin_kernel();
  struct shared *s = shared_memory<struct shared>();
  unsigned t = threadIdx.x, mine = blockIdx.x * (N / BLOCKS) + t;

  if (fault == PLANTED_UNWRITTEN_SHARED && t == 3) {
    if (blockIdx.x != 1)
      s->extra = 1;
    else if (s->extra == 1)
      out[0] = 1;
  }
  load(fault, in, s);
  uint32_t sum = sum_of(fault, s) + early + multiply_ones(fault, s);
  if (fault == PLANTED_NO_WAIT || fault == PLANTED_WAIT_FOR_OLDER)
    copy_async_wait<0>();
  if (fault == PLANTED_DIVERGENT) {
    if (t < THREADS / 2)
      return;
    __syncthreads();
  }
  if (fault == PLANTED_UNWRITTEN && t == 0)
    sum += out[mine] & 1;
  if (fault == PLANTED_BEHIND && t == 0)
    sum += in[N + 64];
  if (fault == PLANTED_MISALIGNED_LOAD)
    sum += reinterpret_cast<const uint2 *>(in + 1)->y;
  if (t < N / BLOCKS)
    out[mine] = sum + mine;
  if (fault == PLANTED_BLOCKS_WRITE && t == 0)
    out[0] = sum;
  if (fault == PLANTED_BLOCKS_READ && t == 0 && out[N - 1 - mine] == 1)
    out[mine] = 0;
  if (fault == PLANTED_PLAIN_COUNTER && blockIdx.x == 2 && t == 5)
    out[N] += 1;
  else
    atomicAdd(&out[N], 1u);
}

err_code_t planted_run(struct device_stream *stream, enum planted_fault fault, const uint32_t *in, uint32_t *out)
{
  return launch(stream, BLOCKS, THREADS, sizeof(struct shared), add_up, fault, in, out);
}
