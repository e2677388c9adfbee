/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors in half precision, with the size of their rounding errors. vector_scan.h bounds inner products with them.
 *
 * A vector x of n numbers is kept as scale * x16. The scale is a power of two that brings the largest number into
 * [1, 2), and x16 is rounded to half precision. So large and tiny vectors both stay within half's range, and products
 * of two numbers stay between 2^-48 and 4. The scale's exponent is clamped too (vector_derive.cu). Numbers that then
 * exceed half's range make the error infinite and the vector's scores unbounded, which is slow but correct.
 */
#ifndef KERNELS_CUDA_VECTOR_DERIVE_H
#define KERNELS_CUDA_VECTOR_DERIVE_H

#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VECTOR_SLICE = 32 }; /* numbers that a scan multiplies at a time */

/* Sizes are Euclidean norms, scale included, times 1 + 2^-20 and rounded up. */
struct vector_sizes {
  float scale;
  float norm;  /* item: |x|; query: |scale x16| */
  float error; /* |x - scale x16|; for items plus what a scan's sums may lose (vector_scan.h) */
  float tail;  /* the norm of the numbers after the first n */
};

/* All pointers are device pointers. */
struct vector_halves {
  size_t stride;              /* numbers per vector: a multiple of VECTOR_SLICE, padded with zeros */
  uint16_t *numbers;          /* [][stride]: x16 */
  struct vector_sizes *sizes; /* [] */
};

static inline size_t vector_halves_stride(size_t n)
{
  return (n + VECTOR_SLICE - 1) / VECTOR_SLICE * VECTOR_SLICE;
}

/* Derive the halves of the items in `slots` from their rows: the first n floats are the vector, float `tail_at` is the
 * tail. Absent slots are skipped. slots [n_slots] on the device. Both functions return ERR_DEVICE on failure. */
err_t vector_derive_items(struct device_stream *stream, const struct device_rows *rows, size_t n, size_t tail_at,
                          const uint32_t *slots, size_t n_slots, const struct vector_halves *items);

/* Derive the halves of queries from the first n of each query's n_all numbers.
 *
 * q      [n_queries][n_all] on the device
 * sigma  [n_all] on the device: the tail is the root of the sum of q_k^2 / sigma_k over the numbers after the first n.
 *        NULL: there is no tail */
err_t vector_derive_queries(struct device_stream *stream, const double *q, const double *sigma, size_t n_queries,
                            size_t n_all, size_t n, const struct vector_halves *queries);

#ifdef __cplusplus
}
#endif

#endif
