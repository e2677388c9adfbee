/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of vectors on the device: q'^T b, computed in double and rounded once to f32. */
#ifndef KERNELS_CUDA_VECTOR_SCORE_H
#define KERNELS_CUDA_VECTOR_SCORE_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Score every entry of list i with query i: the dot product of q' and the first n floats of the item's row. It equals
 * dot_f64 of kernels.h to the last bit. q [n_lists][n] on the device. Returns ERR_DEVICE on failure. */
err_t vector_score(struct device_stream *stream, const struct device_rows *rows, const double *q, size_t n,
                   const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
