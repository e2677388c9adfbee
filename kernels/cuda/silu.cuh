/* SPDX-License-Identifier: Apache-2.0 */
/* SiLU of several numbers at once, with the bits of math_silu(). */
#ifndef KERNELS_CUDA_SILU_CUH
#define KERNELS_CUDA_SILU_CUH

#include "kernels/cuda/warp.cuh"
#include "kernels/math_ref.h"

/* Between these magnitudes no step of divide_usual() can overflow or lose bits to underflow. */
#define SILU_USUAL_MIN    0x1p-60f
#define SILU_USUAL_MAX    0x1p+60f
#define SILU_USUAL_LOWEST (-41.0f) /* exp(41) is below SILU_USUAL_MAX */

/* 1 / x, within 1 ulp for usual numbers. */
static __device__ __forceinline__ float reciprocal(float x)
{
#ifdef SLUICE_CUDA_MODEL
  return 1.0f / x;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

/* x / y, correctly rounded, for usual numbers. These are the compiler's own steps for a division, after its check for
 * unusual numbers. */
static __device__ __forceinline__ float divide_usual(float x, float y)
{
  float inverse = reciprocal(y);
  inverse = fmaf(inverse, fmaf(-y, inverse, 1.0f), inverse);
  float quotient = x * inverse;
  return fmaf(inverse, fmaf(-y, quotient, x), quotient);
}

/* Replace N numbers by their SiLU. One check for all of them allows the divisions to overlap; with a check for each,
 * the compiler makes them wait for each other. */
template <int N> static __device__ __forceinline__ void silu_all(float x[N])
{
  float divisors[N];
  bool is_usual = true;

#pragma unroll
  for (int i = 0; i < N; i++) {
    x[i] = math_silu_dividend(x[i]);
    divisors[i] = math_silu_divisor(x[i]);
    is_usual = is_usual & (fabsf(x[i]) > SILU_USUAL_MIN) & (x[i] < SILU_USUAL_MAX) & (x[i] > SILU_USUAL_LOWEST);
  }
  if (is_usual) {
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] = divide_usual(x[i], divisors[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++)
    x[i] /= divisors[i];
}

#endif
