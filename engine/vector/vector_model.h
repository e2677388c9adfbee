/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose score is an inner product: dot, cosine, weighted_dot and bilinear (bilinear paper, Definition 1).
 *
 *   dot           q^T d               metadata sluice.dim, or the dimension that the space is given
 *   cosine        q^T d / (|q| |d|)   the same; a zero vector scores 0
 *   weighted_dot  q^T diag(v) d       tensor v [n]
 *   bilinear      q^T W d             tensor W [n, n], or P [n, r] and Q [n, r] with W = P Q^T
 *
 * Each score is computed as q'^T b. The row b is what the columns keep of an item; q' is computed from a query. For
 * bilinear both are rotated: W = U diag(sigma) V^T, b = V^T d, q' = diag(sigma) U^T q. So the numbers that matter most
 * come first. Thread: any; a model does not change.
 */
#ifndef ENGINE_VECTOR_VECTOR_MODEL_H
#define ENGINE_VECTOR_VECTOR_MODEL_H

#include <assert.h>

#include "engine/similarity/similarity.h"
#include "engine/vector/vector_sketch.h"

struct vector_model {
  struct model base;
  size_t dim;        /* n: the dimension of item and query vectors */
  size_t row_dim;    /* the dimension of b: n, or the rank of W for bilinear */
  size_t sketch_dim; /* s: the first s numbers of b are sketched; the tail bounds the rest */
  float *weights;    /* weighted_dot: v [n] */
  double *sigma;     /* bilinear: [row_dim], in falling order */
  double *u;         /* [row_dim][n]: U^T */
  float *v;          /* [n][row_dim]: V */
};

/* A prepared item: row_dim floats of b, followed by these numbers. */
enum {
  VECTOR_TAIL, /* |diag(sigma)^(1/2) b| over k >= s, rounded up */
  VECTOR_NORM, /* |b|, rounded up */
  N_VECTOR_SIZES
};

/* A query, prepared for search. On a GPU it has just its vector: the device computes q' (vector_queries_cuda.c). */
struct vector_query {
  const float *vector;               /* [dim]; the query's own */
  double *q;                         /* [row_dim]: q' */
  struct vector_sketch_query sketch; /* bounds on q'^T b */
};

static inline const struct vector_model *vector_model_of(const struct model *model)
{
  assert(model->kind >= SIMILARITY_DOT && model->kind <= SIMILARITY_BILINEAR);
  return (const struct vector_model *)model;
}

/* Queries that this similarity has prepared. */
static inline const struct vector_query *vector_queries_of(const struct prepared_queries *prepared)
{
  return (const struct vector_query *)prepared;
}

err_t vector_model_open_dot(const struct safetensors *file, struct model **out);
err_t vector_model_open_cosine(const struct safetensors *file, struct model **out);
err_t vector_model_open_weighted_dot(const struct safetensors *file, struct model **out);
err_t vector_model_open_bilinear(const struct safetensors *file, struct model **out);
void vector_model_close(struct model **model);

/* Verify everything that vector_model_open_bilinear() would. A large model is not decomposed, and `*out` is left
 * unchanged. */
err_t vector_model_check_bilinear(const struct safetensors *file, struct model **out);

/* Compute q' of a query that is not rotated, of every similarity but bilinear. vector and q [dim] */
void vector_query_weigh(const struct vector_model *m, const float *vector, double *q);

/* Return the query's tail: |diag(sigma)^(1/2) a| over from <= k < to, where q' = diag(sigma) a. Multiplied with an
 * item's tail, it bounds that part of the score (Cauchy-Schwarz). Returns 0 if the range is empty. */
double vector_query_tail(const struct vector_model *m, const double *q, size_t from, size_t to);

/* Sketch the first n numbers of q', as if the others were 0. Returns ERR_MEMORY. */
err_t vector_query_sketch(const struct vector_model *m, const double *q, size_t n, struct region *region,
                          struct vector_sketch_query *out);

#endif
