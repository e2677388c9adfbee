/* SPDX-License-Identifier: Apache-2.0 */
/* The query's side of a bilinear model on the device: q' = diag(sigma) U^T q (engine/vector/vector_model.h). */
#ifndef KERNELS_CUDA_VECTOR_ROTATE_H
#define KERNELS_CUDA_VECTOR_ROTATE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers. */
struct vector_rotation {
  double *u;     /* U^T: [][dim] */
  double *sigma; /* one for each row of U^T */
  size_t dim;
};

/* Compute the first n numbers of q' of n_vectors queries. Each has the bits of dots_f64() of kernels.h, times sigma.
 *
 * vectors  [n_vectors][dim] on the device
 * q        [n_vectors][n] on the device
 *
 * Returns ERR_DEVICE on failure. */
err_t vector_rotate(struct device_stream *stream, const struct vector_rotation *rotation, const float *vectors,
                    size_t n_vectors, size_t n, double *q);

#ifdef __cplusplus
}
#endif

#endif
