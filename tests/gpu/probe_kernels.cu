/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of probe_kernels.h. */
#include "tests/gpu/probe_kernels.h"

#include <float.h>

#include "kernels/cuda/warp.cuh"

enum { THREADS = 256, BLOCKS = 2048, WARPS = THREADS / WARP_LANES, M = 16, N = 8, K = 16 };

static __device__ __forceinline__ float fast(enum probe_function function, float x)
{
  switch (function) {
  case PROBE_EXP2:
    return fast_exp2(x);
  case PROBE_TANH:
    return fast_tanh(x);
  case PROBE_SQRT:
    return fast_sqrt(x);
  default:
    return fast_reciprocal(x);
  }
}

static __device__ __forceinline__ double exact(enum probe_function function, double x)
{
  switch (function) {
  case PROBE_EXP2:
    return exp2(x);
  case PROBE_TANH:
    return tanh(x);
  case PROBE_SQRT:
    return sqrt(x);
  default:
    return 1 / x;
  }
}

/* Compare a result. Returns its relative error, or -1 if it is wrong in another way. */
static __device__ float error_of(float found, double wanted)
{
  double size = fabs(wanted);

  if (wanted != wanted)
    return found != found ? 0.0f : -1.0f;
  if (size > (double)FLT_MAX)
    return fabs((double)found) >= (double)FLT_MAX && (found > 0) == (wanted > 0) ? 0.0f : -1.0f;
  double error = fabs((double)found - wanted);
  if (size < 0x1p-126)
    return error <= 0x1p-126 ? 0.0f : -1.0f;
  error /= size;
  return error < INFINITY ? (float)error : -1.0f;
}

static __global__ void __launch_bounds__(THREADS)
    sweep(enum probe_function function, uint32_t first, uint32_t stride, uint64_t n, unsigned long long *found)
{
  begin_kernel();
  unsigned long long worst = 0, n_wrong = 0;

  for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * THREADS) {
    uint32_t bits = first + (uint32_t)i * stride;
    float x = __uint_as_float(bits), error = error_of(fast(function, x), exact(function, (double)x));
    if (error < 0.0f) {
      n_wrong++;
      continue;
    }
    unsigned long long both = (unsigned long long)__float_as_uint(error) << 32 | bits;
    worst = both > worst ? both : worst;
  }
  atomicMax(&found[0], worst);
  if (n_wrong)
    atomicAdd(&found[1], n_wrong);
}

static __global__ void __launch_bounds__(THREADS)
    multiply(size_t n, const uint32_t *a, const uint32_t *b, const float *c, float *d)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  if (i >= n)
    return;
  a += i * (M * K / 2);
  b += i * (N * K / 2);
  c += i * (M * N);
  d += i * (M * N);
  const uint32_t mine_a[4] = { a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4] };
  const uint32_t mine_b[2] = { b[g * 8 + t], b[g * 8 + t + 4] };
  const float mine_c[4] = { c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t],
                            c[(g + 8) * 8 + 2 * t + 1] };
  float mine_d[4];
  mma_f16(mine_d, mine_a, mine_b, mine_c);
  for (unsigned k = 0; k < 4; k++)
    d[(g + k / 2 * 8) * 8 + 2 * t + k % 2] = mine_d[k];
}

err_code_t probe_sweep(struct device_stream *stream, enum probe_function function, uint32_t first, uint32_t stride,
                       uint64_t n, struct probe_found *found)
{
  unsigned n_blocks = n < (uint64_t)BLOCKS * THREADS ? blocks_for((size_t)n, THREADS) : (unsigned)BLOCKS;

  return launch(stream, n_blocks, THREADS, 0, sweep, function, first, stride, n,
                reinterpret_cast<unsigned long long *>(found));
}

err_code_t probe_mma(struct device_stream *stream, size_t n, const uint16_t *a, const uint16_t *b, const float *c,
                     float *d)
{
  return launch(stream, blocks_for(n, WARPS), THREADS, 0, multiply, n, reinterpret_cast<const uint32_t *>(a),
                reinterpret_cast<const uint32_t *>(b), c, d);
}
