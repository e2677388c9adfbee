/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of cuBLAS's matrix product, as a peak of the device. Only if the toolkit has cuBLAS (HAVE_CUBLAS). */
#ifndef TESTS_BENCH_GPU_CUBLAS_H
#define TESTS_BENCH_GPU_CUBLAS_H

/* Multiply n x n matrices of random f16 numbers, summed in f32. Return floating-point operations per nanosecond, the
 * best of a few runs; 0 if it fails. */
double gpu_cublas_rate(int n);

#endif
