/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that measure a GPU's peak rates: copies, tensor cores, special functions, shared memory. */
#include "tests/bench/gpu_ceilings.h"

#ifndef SLUICE_CUDA_MODEL
#include <cuda_profiler_api.h>
#endif
#include <stdlib.h>

#include "kernels/cuda/device_timer.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp.cuh"

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8, RUNS = 7, CHAINS = 8, TABLE = 8192, PATTERN_BYTES = 1 << 20 };

struct gpu_ceilings {
  size_t bytes, loops;
  unsigned n_blocks;
  struct device_stream *stream;
  struct device_timer *timer;
  uint8_t *from, *to, *pattern;
};

/* One multiply-add of a tensor core: 16 x 8 x 16 numbers. */
static const double MMA_FLOPS = 2.0 * 16 * 8 * 16;

static __global__ void __launch_bounds__(THREADS) read_all(const uint4 *from, size_t n, uint32_t *out)
{
  begin_kernel();
  size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x, step = (size_t)gridDim.x * THREADS;
  uint32_t all = 0;

#pragma unroll 8
  for (size_t i = thread; i < n; i += step) {
    uint4 some = from[i];
    all |= some.x ^ some.y ^ some.z ^ some.w;
  }
  if (thread < n && all == 0) /* never: the numbers are random. Without this, nothing would be read */
    out[thread] = all;
}

static __global__ void __launch_bounds__(THREADS) mma_loop(const uint32_t *random, size_t loops, float *out)
{
  begin_kernel();
  size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
  uint32_t a[4], b[2];
  float d[CHAINS][4] = {};

  /* Random halves with magnitudes from 2^-5 to 2^-4, so sums stay far below the largest f32. */
  for (int i = 0; i < 4; i++)
    a[i] = (random[threadIdx.x * 8 + i] & 0x83ff83ffu) | 0x28002800u;
  for (int i = 0; i < 2; i++)
    b[i] = (random[threadIdx.x * 8 + 4 + i] & 0x83ff83ffu) | 0x28002800u;
  for (size_t loop = 0; loop < loops; loop++) {
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
      mma_f16(d[c], a, b, d[c]);
  }
  float sum = 0;
  for (int c = 0; c < CHAINS; c++)
    sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
  out[thread] = sum;
}

static __global__ void __launch_bounds__(THREADS) shared_loop(const uint32_t *random, size_t loops, uint32_t *out)
{
  begin_kernel();
  uint32_t *table = shared_memory<uint32_t>(), sum[4] = {}, at = threadIdx.x;

  for (unsigned i = threadIdx.x; i < TABLE; i += THREADS)
    table[i] = random[i];
  __syncthreads();
  for (size_t loop = 0; loop < loops; loop++) {
#pragma unroll
    for (int c = 0; c < 4; c++)
      sum[c] += table[c * (TABLE / 4) + at];
    at = (at + 97 * WARP_LANES + 1) % (TABLE / 4); /* a different row each time, and no two lanes in one bank */
  }
  out[(size_t)blockIdx.x * THREADS + threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}

template <bool IS_TANH>
static __global__ void __launch_bounds__(THREADS) special_loop(const uint32_t *random, size_t loops, float *out)
{
  begin_kernel();
  float x[CHAINS], sum = 0;

  for (int c = 0; c < CHAINS; c++)
    x[c] = __uint_as_float((random[threadIdx.x * CHAINS + c] & 0x807fffffu) | 0x3f000000u); /* 1/2 to 1, any sign */
  for (size_t loop = 0; loop < loops; loop++) {
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
      x[c] = IS_TANH ? fast_tanh(x[c]) : fast_exp2(-x[c]);
  }
  for (int c = 0; c < CHAINS; c++)
    sum += x[c];
  out[(size_t)blockIdx.x * THREADS + threadIdx.x] = sum;
}

void gpu_ceilings_close(struct gpu_ceilings **ceilings)
{
  struct gpu_ceilings *c = *ceilings;

  if (!c)
    return;
  device_timer_close(&c->timer);
  device_stream_close(&c->stream);
  device_free(&c->from);
  device_free(&c->to);
  device_free_host(&c->pattern);
  free(c);
  *ceilings = NULL;
}

static err_code_t fill(struct gpu_ceilings *c)
{
  uint64_t state = 1;

  for (size_t i = 0; i < PATTERN_BYTES; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c->pattern[i] = (uint8_t)(state >> 56);
  }
  for (size_t at = 0; at < c->bytes; at += PATTERN_BYTES)
    TRY(device_copy_in(c->stream, c->from + at, c->pattern, min(c->bytes - at, (size_t)PATTERN_BYTES)));
  TRY(device_copy(c->stream, c->to, c->from, c->bytes));
  return device_wait(c->stream);
}

static err_code_t open_all(struct gpu_ceilings *c)
{
  struct device device;

  TRY(device_find(&device));
  c->n_blocks = (unsigned)device.n_processors * BLOCKS_PER_PROCESSOR;
  TRY(device_stream_open(&c->stream));
  TRY(device_timer_open(&c->timer));
  TRY(device_alloc(c->bytes, 1, &c->from));
  TRY(device_alloc(c->bytes, 1, &c->to));
  TRY(device_alloc_host(PATTERN_BYTES, 1, &c->pattern));
  return fill(c);
}

err_code_t gpu_ceilings_open(size_t bytes, size_t loops, struct gpu_ceilings **out)
{
  struct gpu_ceilings *c = static_cast<struct gpu_ceilings *>(calloc(1, sizeof *c));

  if (!c)
    FAIL(ERR_MEMORY, "no memory");
  c->bytes = bytes;
  c->loops = loops;
  err_code_t err = open_all(c);
  if (err != ERR_OK) {
    gpu_ceilings_close(&c);
    return err;
  }
  *out = c;
  return ERR_OK;
}

static err_code_t run_read(struct gpu_ceilings *c)
{
  return launch(c->stream, c->n_blocks, THREADS, 0, read_all, (const uint4 *)c->from, c->bytes / sizeof(uint4),
                (uint32_t *)c->to);
}

err_code_t gpu_ceilings_flush(struct gpu_ceilings *c)
{
  TRY(device_copy(c->stream, c->to, c->from, c->bytes));
  TRY(run_read(c));
  return device_wait(c->stream);
}

static err_code_t run_copy(struct gpu_ceilings *c)
{
  return device_copy(c->stream, c->to, c->from, c->bytes);
}

static err_code_t run_mma(struct gpu_ceilings *c)
{
  return launch(c->stream, c->n_blocks, THREADS, 0, mma_loop, (const uint32_t *)c->from, c->loops, (float *)c->to);
}

static err_code_t run_shared(struct gpu_ceilings *c)
{
  return launch(c->stream, c->n_blocks, THREADS, TABLE * sizeof(uint32_t), shared_loop, (const uint32_t *)c->from,
                c->loops, (uint32_t *)c->to);
}

static err_code_t run_tanh(struct gpu_ceilings *c)
{
  return launch(c->stream, c->n_blocks, THREADS, 0, special_loop<true>, (const uint32_t *)c->from, c->loops,
                (float *)c->to);
}

static err_code_t run_exp2(struct gpu_ceilings *c)
{
  return launch(c->stream, c->n_blocks, THREADS, 0, special_loop<false>, (const uint32_t *)c->from, c->loops,
                (float *)c->to);
}

/* Return work per nanosecond in the fastest of a few runs. The first one warms up. */
static err_code_t best_rate(struct gpu_ceilings *c, err_code_t (*run)(struct gpu_ceilings *), double work, double *out)
{
  double best = 0;

  for (int i = 0; i <= RUNS; i++) {
    double ms;
    TRY(device_timer_start(c->timer, c->stream));
    TRY(run(c));
    TRY(device_timer_stop(c->timer, c->stream));
    TRY(device_timer_read(c->timer, &ms));
    if (i > 0 && ms > 0 && work / ms * 1e-6 > best)
      best = work / ms * 1e-6;
  }
  *out = best;
  return ERR_OK;
}

err_code_t gpu_ceilings_copy_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_copy, 2.0 * (double)c->bytes, out);
}

err_code_t gpu_ceilings_read_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_read, (double)c->bytes, out);
}

err_code_t gpu_ceilings_mma_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_mma, MMA_FLOPS * CHAINS * (double)c->loops * c->n_blocks * (THREADS / WARP_LANES), out);
}

err_code_t gpu_ceilings_shared_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_shared, 4.0 * (double)c->loops * c->n_blocks * THREADS, out);
}

err_code_t gpu_ceilings_tanh_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_tanh, (double)CHAINS * (double)c->loops * c->n_blocks * THREADS, out);
}

err_code_t gpu_ceilings_exp2_rate(struct gpu_ceilings *c, double *out)
{
  return best_rate(c, run_exp2, (double)CHAINS * (double)c->loops * c->n_blocks * THREADS, out);
}

err_code_t gpu_ceilings_profile(bool is_on)
{
#ifdef SLUICE_CUDA_MODEL
  (void)is_on;
  return ERR_OK;
#else
  cudaError_t error = is_on ? cudaProfilerStart() : cudaProfilerStop();
  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "no profile");
#endif
}
