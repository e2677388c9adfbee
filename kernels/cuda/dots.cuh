/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products in double with the bits of dot_f64() of kernels.h: a warp's lanes are its 32 partial sums. */
#ifndef KERNELS_CUDA_DOTS_CUH
#define KERNELS_CUDA_DOTS_CUH

#include "kernels/cuda/warp.cuh"

/* Add the products of numbers `first` to `first + STEPS * WARP_LANES - 1` to the lane's partial sums. Without a branch
 * between the loads, all of them are under way at the same time. */
template <int STEPS, int N>
static __device__ __forceinline__ void dots_add(const double *x, const float *const (&y)[N], size_t first,
                                                double (&sums)[N])
{
  double mine[STEPS];
  float numbers[STEPS][N];

#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    size_t k = first + i * WARP_LANES + warp_lane();
    mine[i] = x[k];
#pragma unroll
    for (int v = 0; v < N; v++)
      numbers[i][v] = y[v][k];
  }
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
#pragma unroll
    for (int v = 0; v < N; v++)
      sums[v] = fma(mine[i], (double)numbers[i][v], sums[v]);
  }
}

/* Compute sums[v], the dot product of x and y[v], in every lane. One warp. x, y[v]: [n]. STEPS: how many times
 * WARP_LANES numbers of each are read at a time. */
template <int STEPS, int N>
static __device__ __forceinline__ void dots_f64(const double *x, const float *const (&y)[N], size_t n,
                                                double (&sums)[N])
{
  size_t first = 0;

#pragma unroll
  for (int v = 0; v < N; v++)
    sums[v] = 0;
  for (; first + STEPS * WARP_LANES <= n; first += STEPS * WARP_LANES)
    dots_add<STEPS>(x, y, first, sums);
  for (; first < n; first += WARP_LANES) {
    size_t k = first + warp_lane();
#pragma unroll
    for (int v = 0; v < N; v++)
      sums[v] = fma(k < n ? x[k] : 0.0, k < n ? (double)y[v][k] : 0.0, sums[v]);
  }
#pragma unroll
  for (int v = 0; v < N; v++) {
    for (int half = WARP_LANES / 2; half > 0; half /= 2)
      sums[v] += __shfl_xor_sync(WARP_ALL, sums[v], half);
  }
}

#endif
