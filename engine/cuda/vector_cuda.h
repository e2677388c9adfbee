/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of dot, cosine, weighted_dot and bilinear in device memory. Private to the files vector_*cuda*. */
#ifndef ENGINE_CUDA_VECTOR_CUDA_H
#define ENGINE_CUDA_VECTOR_CUDA_H

#include "engine/cuda/funnel.h"
#include "engine/search/search_batch.h"
#include "engine/vector/vector_model.h"
#include "kernels/cuda/vector_rotate.h"

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

/* The query's side of the model (vector_queries_cuda.c) -------------------- */

/* device_columns_ops.open, close and shared_bytes: a struct vector_rotation for bilinear, else NULL. */
err_t vector_cuda_open_rotation(const struct model *model, struct device_stream *stream, void **shared);
void vector_cuda_close_rotation(void **shared);
size_t vector_cuda_rotation_bytes(const struct model *model);

/* columns_ops.prepare_queries: notes where the queries' vectors are. They must stay there during the search. */
err_t vector_cuda_prepare_queries(const struct model *model, const struct kernels *kernels,
                                  const struct query *const *queries, size_t n, struct region *region,
                                  struct prepared_queries **prepared);

/* What a query with n numbers of q' takes of a worker's memory. */
struct vector_cuda_bytes {
  size_t input, scratch;
};
struct vector_cuda_bytes vector_cuda_query_bytes(const struct device_columns *c, size_t n);

/* Send the queries, with all inputs that have not been sent yet, and compute the first n numbers of their q' on the
 * device, in the worker's stream.
 *
 * n  1 .. row_dim; row_dim unless the model is bilinear
 * q  [n_queries][n] on the device, valid until the worker is reset
 *
 * Returns ERR_DEVICE on failure. Blocks: no. */
err_t vector_cuda_send_queries(const struct device_columns *c, struct device_worker *w,
                               const struct vector_query *queries, size_t n_queries, size_t n, double **q);

/* The singular values on the device, [row_dim]. NULL: the model has none, and its vectors have no tails. */
const double *vector_cuda_sigma(const struct device_columns *c);

#endif
