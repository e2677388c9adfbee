/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of probe_kernels.h. */
#include "tests/gpu/probe_kernels.h"

#include <float.h>

#include "kernels/cuda/warpgroup.cuh"

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

/* A lane's part of product i, as mma_f16() wants it. */
struct operands {
  uint32_t a[4], b[2];
  float c[4];
};

static __device__ __forceinline__ struct operands load_operands(size_t i, const uint32_t *a, const uint32_t *b,
                                                                const float *c)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  a += i * (M * K / 2);
  b += i * (N * K / 2);
  c += i * (M * N);
  return { { a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4] },
           { b[g * 8 + t], b[g * 8 + t + 4] },
           { c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1] } };
}

static __device__ __forceinline__ void store_result(size_t i, const float mine[4], float *d)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  for (unsigned k = 0; k < 4; k++)
    d[i * (M * N) + (g + k / 2 * 8) * 8 + 2 * t + k % 2] = mine[k];
}

static __global__ void __launch_bounds__(THREADS)
    multiply(size_t n, const uint32_t *a, const uint32_t *b, const float *c, float *d)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i >= n)
    return;
  struct operands of = load_operands(i, a, b, c);
  float mine[4];
  mma_f16(mine, of.a, of.b, of.c);
  store_result(i, mine, d);
}

/* The same with sums in half precision. */
static __global__ void __launch_bounds__(THREADS)
    multiply_to_halves(size_t n, const uint32_t *a, const uint32_t *b, const float *c, float *d)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i >= n)
    return;
  struct operands of = load_operands(i, a, b, c);
  uint32_t start[2] = { half_pair(of.c[0], of.c[1]), half_pair(of.c[2], of.c[3]) }, two[2];
  mma_halves(two, of.a, of.b, start);
  float mine[4];
  for (unsigned k = 0; k < 4; k++)
    mine[k] = float_of((half_bits)(two[k / 2] >> 16 * (k % 2)));
  store_result(i, mine, d);
}

/* The same by warpgroups. Warp w of each multiplies its A by the B of all four, and keeps the columns of its own. */
static __global__ void __launch_bounds__(WARPGROUP_THREADS)
    multiply_together(size_t n, const uint32_t *a, const uint32_t *b, const float *c, float *d)
{
  begin_kernel();
  half_bits *columns = shared_memory<half_bits>();
  unsigned w = threadIdx.x / WARP_LANES;
  size_t i = (size_t)blockIdx.x * WARPGROUP_WARPS + w;
  struct operands of = load_operands(i < n ? i : n - 1, a, b, c);
  float sums[WARPGROUP_WARPS][4] = {};

  for (unsigned k = 0; k < 2; k++)
    reinterpret_cast<uint32_t *>(columns)[(2 * w + k) * WARP_LANES + warp_lane()] = of.b[k];
  warpgroup_publish();
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < WARPGROUP_WARPS; j++) {
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      sums[j][k] = of.c[k];
  }
  warpgroup_begin();
  warpgroup_add(sums, of.a, columns, 0);
  warpgroup_commit();
  warpgroup_wait(0, sums);
#pragma unroll
  for (unsigned j = 0; j < WARPGROUP_WARPS; j++) {
    if (j == w && i < n)
      store_result(i, sums[j], d);
  }
}

err_code_t probe_sweep(struct device_stream *stream, enum probe_function function, uint32_t first, uint32_t stride,
                       uint64_t n, struct probe_found *found)
{
  unsigned n_blocks = n < (uint64_t)BLOCKS * THREADS ? blocks_for((size_t)n, THREADS) : (unsigned)BLOCKS;

  return launch(stream, n_blocks, THREADS, 0, sweep, function, first, stride, n,
                reinterpret_cast<unsigned long long *>(found));
}

err_code_t probe_mma(struct device_stream *stream, enum probe_product product, size_t n, const uint16_t *a,
                     const uint16_t *b, const float *c, float *d)
{
  const uint32_t *pairs_a = reinterpret_cast<const uint32_t *>(a), *pairs_b = reinterpret_cast<const uint32_t *>(b);

  if (product == PROBE_WARPGROUPS)
    return launch(stream, blocks_for(n, WARPGROUP_WARPS), WARPGROUP_THREADS,
                  WARPGROUP_WARPS * 2 * MATRIX_HALVES * sizeof(half_bits), multiply_together, n, pairs_a, pairs_b, c,
                  d);
  return launch(stream, blocks_for(n, WARPS), THREADS, 0, product == PROBE_HALVES ? multiply_to_halves : multiply, n,
                pairs_a, pairs_b, c, d);
}

bool probe_has_warpgroups(void)
{
  return device_find_together() == ERR_OK && device_warps_together() == WARPGROUP_WARPS;
}
