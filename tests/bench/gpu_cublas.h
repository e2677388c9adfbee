/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of cuBLAS, as a limit of the device. Only where the toolkit has it (HAVE_CUBLAS). */
#ifndef TESTS_BENCH_GPU_CUBLAS_H
#define TESTS_BENCH_GPU_CUBLAS_H

/* Floating-point operations a nanosecond of a product of n x n matrices of random f16 numbers, summed in f32; the best
 * of a few. 0 where it fails. */
double gpu_cublas_rate(int n);

#endif
