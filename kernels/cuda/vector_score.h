/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of vectors on the device: q'^T b in double, rounded once to f32. */
#ifndef KERNELS_CUDA_VECTOR_SCORE_H
#define KERNELS_CUDA_VECTOR_SCORE_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The score of every entry of list i with query i: q' over its n numbers times the first n floats of the item's row,
 * summed as dot_f64 of kernels.h does, to the last bit. q [n_lists][n] of the device. Returns ERR_DEVICE. */
err_t vector_score(struct device_stream *stream, const struct device_rows *rows, const double *q, size_t n,
                   const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
