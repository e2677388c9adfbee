/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of dot, cosine, weighted_dot and bilinear in device memory. Private to the files vector_*cuda*. */
#ifndef ENGINE_CUDA_VECTOR_CUDA_H
#define ENGINE_CUDA_VECTOR_CUDA_H

#include "engine/cuda/funnel.h"
#include "engine/vector/vector_model.h"

/* Indices of the derived arrays: struct vector_halves of the first sketch_dim numbers of b. */
enum { VECTOR_DERIVED_NUMBERS, VECTOR_DERIVED_SIZES };

/* Find the K best by the first n numbers of q' and b, and fill the results with receipts of an exact search.
 *
 * n  1 .. row_dim. row_dim gives the similarity's own scores, r the scores under W_r
 */
err_t vector_cuda_search(const struct device_columns *c, struct search_batch *batch, size_t n);

static inline const struct vector_model *vector_cuda_model(const struct device_columns *c)
{
  return vector_model_of(c->model);
}

#endif
