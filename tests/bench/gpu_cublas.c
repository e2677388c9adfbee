/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of a half-precision matrix product, measured with cuBLAS. */
#include "tests/bench/gpu_cublas.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/support/dice.h"

enum { RUNS = 10 };

struct product {
  cublasHandle_t handle;
  cudaEvent_t start, stop;
  void *a, *b, *c;
};

/* Random bits of a half with a magnitude from 2^-5 to 2^-4. */
static int upload(void **out, size_t n, uint64_t seed)
{
  struct dice dice = { seed };
  uint16_t *halves = malloc(n * sizeof *halves);

  for (size_t i = 0; halves && i < n; i++)
    halves[i] = (uint16_t)((dice_u64(&dice) & 0x83ff) | 0x2800);
  int ok = halves && cudaMalloc(out, n * sizeof *halves) == cudaSuccess &&
           cudaMemcpy(*out, halves, n * sizeof *halves, cudaMemcpyHostToDevice) == cudaSuccess;
  free(halves);
  return ok;
}

/* Time one product: milliseconds, or 0 if it fails. */
static double run(const struct product *p, int n)
{
  float alpha = 1, beta = 0, ms = 0;

  cudaEventRecord(p->start, NULL);
  if (cublasGemmEx(p->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, p->a, CUDA_R_16F, n, p->b, CUDA_R_16F, n,
                   &beta, p->c, CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
    return 0;
  cudaEventRecord(p->stop, NULL);
  if (cudaEventSynchronize(p->stop) != cudaSuccess || cudaEventElapsedTime(&ms, p->start, p->stop) != cudaSuccess)
    return 0;
  return (double)ms;
}

double gpu_cublas_rate(int n)
{
  struct product p = { 0 };
  size_t n_numbers = (size_t)n * (size_t)n;
  double best = 0, work = 2.0 * n * (double)n_numbers;

  if (cublasCreate(&p.handle) == CUBLAS_STATUS_SUCCESS && cudaEventCreate(&p.start) == cudaSuccess &&
      cudaEventCreate(&p.stop) == cudaSuccess && upload(&p.a, n_numbers, 1) && upload(&p.b, n_numbers, 2) &&
      cudaMalloc(&p.c, n_numbers * sizeof(uint16_t)) == cudaSuccess) {
    for (int i = 0; i <= RUNS; i++) {
      double ms = run(&p, n);
      if (i > 0 && ms > 0 && work / ms * 1e-6 > best)
        best = work / ms * 1e-6;
    }
  }
  cudaFree(p.a);
  cudaFree(p.b);
  cudaFree(p.c);
  if (p.start)
    cudaEventDestroy(p.start);
  if (p.stop)
    cudaEventDestroy(p.stop);
  if (p.handle)
    cublasDestroy(p.handle);
  return best;
}
