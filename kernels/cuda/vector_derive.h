/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors in half precision, and what is lost by it: what kernels/cuda/vector_scan.h bounds inner products with.
 *
 * A vector x of n numbers is kept as scale * x16: the scale is a power of two that brings the largest number to [1, 2),
 * and x16 is rounded to half precision. So neither large nor tiny vectors leave its range, and products of two of them
 * stay between 2^-48 and 4. The scale itself is kept within SCALE limits: numbers beyond half precision make the error
 * infinite, and the vector's scores unbounded, which is slow, and right.
 */
#ifndef KERNELS_CUDA_VECTOR_DERIVE_H
#define KERNELS_CUDA_VECTOR_DERIVE_H

#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VECTOR_SLICE = 32 }; /* numbers that a scan takes at a time */

/* Sizes are L2 norms of real numbers, scale included, multiplied with 1 + 2^-20 and rounded up. */
struct vector_sizes {
  float scale;
  float norm;  /* item: |x|; query: |scale x16| */
  float error; /* |x - scale x16|; item: and what a scan's sums may add (vector_scan.h) */
  float tail;  /* the size of what is not among the n numbers */
};

/* All pointers are of the device. */
struct vector_halves {
  size_t stride;              /* of numbers: a multiple of VECTOR_SLICE, zeros behind n */
  uint16_t *numbers;          /* [][stride]: x16 */
  struct vector_sizes *sizes; /* [] */
};

static inline size_t vector_halves_stride(size_t n)
{
  return (n + VECTOR_SLICE - 1) / VECTOR_SLICE * VECTOR_SLICE;
}

/* Halves of the items in these slots from their rows: the first n floats of each, and float `tail_at` as the tail.
 * Slots without a part are skipped. slots [n_slots] of the device. Both return ERR_DEVICE. */
err_t vector_derive_items(struct device_stream *stream, const struct device_rows *rows, size_t n, size_t tail_at,
                          const uint32_t *slots, size_t n_slots, const struct vector_halves *items);

/* Halves of queries: the first n of each one's n_all numbers. q [n_queries][n_all], tails [n_queries] of the device. */
err_t vector_derive_queries(struct device_stream *stream, const double *q, const float *tails, size_t n_queries,
                            size_t n_all, size_t n, const struct vector_halves *queries);

#ifdef __cplusplus
}
#endif

#endif
