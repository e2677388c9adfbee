/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of vector_rotate.h. A warp multiplies a row of U^T with several vectors, so that it reads the row once for
 * all of them. */
#include "kernels/cuda/vector_rotate.h"

#include "kernels/cuda/dots.cuh"
#include "kernels/cuda/launch.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP_LANES };

/* Vectors of a warp, and how many of its reads of each are under way at a time. A single vector needs more of them. */
enum { TOGETHER = 8, TOGETHER_STEPS = 4, SINGLE_STEPS = 8 };

template <int N, int STEPS>
static __global__ void __launch_bounds__(THREADS)
    rotate(struct vector_rotation rotation, const float *vectors, size_t n_vectors, size_t n, double *q)
{
  begin_kernel();
  size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES, first = (size_t)blockIdx.y * N;
  const float *mine[N];
  double sums[N];

  if (row >= n) /* the same for all lanes */
    return;
#pragma unroll
  for (int v = 0; v < N; v++) /* after the last vector, it comes again */
    mine[v] = vectors + min(first + v, n_vectors - 1) * rotation.dim;
  dots_f64<STEPS>(rotation.u + row * rotation.dim, mine, rotation.dim, sums);
#pragma unroll
  for (int v = 0; v < N; v++) {
    if (warp_lane() == 0 && first + v < n_vectors)
      q[(first + v) * n + row] = sums[v] * rotation.sigma[row];
  }
}

err_code_t vector_rotate(struct device_stream *stream, const struct vector_rotation *rotation, const float *vectors,
                         size_t n_vectors, size_t n, double *q)
{
  if (n_vectors == 0 || n == 0)
    return ERR_OK;
  if (n_vectors == 1)
    return launch(stream, blocks_for(n, WARPS), THREADS, 0, rotate<1, SINGLE_STEPS>, *rotation, vectors, n_vectors, n,
                  q);
  return launch(stream, dim3(blocks_for(n, WARPS), blocks_for(n_vectors, TOGETHER)), THREADS, 0,
                rotate<TOGETHER, TOGETHER_STEPS>, *rotation, vectors, n_vectors, n, q);
}
