/* SPDX-License-Identifier: Apache-2.0 */
/* The similarities dot, cosine, weighted_dot and bilinear: checks of parts and queries, and their preparation. */
#include <math.h>

#include "engine/model/shape_check.h"
#include "engine/vector/vector_methods.h"
#include "engine/vector/vector_model.h"

/* Number of items that are rotated together: enough to reuse the matrix, few enough to stay in cache. */
enum { PREPARE_CHUNK = 96 };

static err_t check_part(const struct model *model, const struct part *part)
{
  const struct vector_model *m = vector_model_of(model);
  const char *where = shape_check_part_name(part);

  TRY(shape_check_floats(ERR_ITEM, where, "vector", part->vector, m->dim));
  TRY(shape_check_absent(ERR_ITEM, where, "components", part->components.n));
  TRY(shape_check_absent(ERR_ITEM, where, "item_gate", part->item_gate.n));
  return shape_check_absent(ERR_ITEM, where, "codes", part->codes.n);
}

static err_t check_query(const struct model *model, const struct query *query)
{
  const struct vector_model *m = vector_model_of(model);

  TRY(shape_check_floats(ERR_QUERY, "query", "vector", query->vector, m->dim));
  TRY(shape_check_absent(ERR_QUERY, "query", "components", query->components.n));
  return shape_check_absent(ERR_QUERY, "query", "query_gate", query->query_gate.n);
}

static struct model_lengths lengths(const struct model *model)
{
  const struct vector_model *m = vector_model_of(model);

  return (struct model_lengths){ .item_vector = m->dim, .query_vector = m->dim };
}

static size_t prepared_bytes(const struct model *model)
{
  return (vector_model_of(model)->row_dim + N_VECTOR_SIZES) * sizeof(float);
}

/* sqrt(sum of w_k b_k^2), rounded up. w NULL: all weights are 1. */
static float size_of(const double *w, const float *b, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += (w ? w[k] : 1.0) * ((double)b[k] * (double)b[k]);
  return nextafterf((float)(sqrt(sum) * (1 + 0x1p-40)), INFINITY);
}

static void finish_row(const struct vector_model *m, float *row)
{
  size_t s = m->sketch_dim;

  if (m->base.kind == SIMILARITY_COSINE)
    kernels_normalize(row, 1, m->row_dim, 0x1p-149f); /* the smallest norm that is not 0 */
  row[m->row_dim + VECTOR_TAIL] = m->sigma ? size_of(m->sigma + s, row + s, m->row_dim - s) : 0.0f;
  row[m->row_dim + VECTOR_NORM] = m->sigma ? size_of(NULL, row, m->row_dim) : 0.0f;
}

/* Compute b = V^T d in f32. The canonical score is defined on the stored b. So this rounding happens once, as part of
 * the model, and no bound has to cover it. It is small. Each step of a sum rounds by 2^-25 of the partial sum, which is
 * about |b_k| / sqrt(2) on average over the sum. So sqrt(n) random roundings add up to 2^-25.5 sqrt(n) of a number.
 * That is 6e-7 at n = 768, and as much of a score. */
static err_t rotate_chunk(const struct vector_model *m, const struct kernels *kernels, const struct part *const *parts,
                          size_t n, struct region *scratch, float *rotated)
{
  float *vectors;

  TRY(region_array(scratch, n * m->dim, sizeof *vectors, &vectors));
  for (size_t i = 0; i < n; i++)
    memcpy(vectors + i * m->dim, parts[i]->vector.v, m->dim * sizeof *vectors);
  kernels->linear(vectors, n, m->dim, m->v, NULL, m->row_dim, rotated);
  return ERR_OK;
}

static err_t prepare_chunk(const struct vector_model *m, const struct kernels *kernels, const struct part *const *parts,
                           size_t n, struct region *scratch, float *prepared)
{
  size_t stride = m->row_dim + N_VECTOR_SIZES;
  float *rotated = NULL;

  if (m->v) {
    TRY(region_array(scratch, n * m->row_dim, sizeof *rotated, &rotated));
    TRY(rotate_chunk(m, kernels, parts, n, scratch, rotated));
  }
  for (size_t i = 0; i < n; i++) {
    memcpy(prepared + i * stride, rotated ? rotated + i * m->row_dim : parts[i]->vector.v,
           m->row_dim * sizeof *prepared);
    finish_row(m, prepared + i * stride);
  }
  return ERR_OK;
}

static err_t prepare_parts(const struct model *model, const struct kernels *kernels, const struct part *const *parts,
                           size_t n, struct region *scratch, uint8_t *prepared)
{
  size_t bytes = prepared_bytes(model);

  for (size_t i = 0; i < n; i += PREPARE_CHUNK) {
    size_t n_chunk = n - i < PREPARE_CHUNK ? n - i : PREPARE_CHUNK;
    float *out = (float *)(void *)(prepared + i * bytes);
    TRY(prepare_chunk(vector_model_of(model), kernels, parts + i, n_chunk, scratch, out));
  }
  return ERR_OK;
}

/* Compute q' = diag(sigma) U^T q for all queries, so that each row of U is read once. q [n][row_dim] */
static err_t rotate_queries(const struct vector_model *m, const struct kernels *kernels,
                            const struct query *const *queries, size_t n, struct region *region, double *q)
{
  const float **vectors;

  TRY(region_array(region, n, sizeof(float *), &vectors));
  for (size_t i = 0; i < n; i++)
    vectors[i] = queries[i]->vector.v;
  kernels->dots_f64(m->u, m->row_dim, vectors, n, m->dim, q);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < m->row_dim; k++)
      q[i * m->row_dim + k] *= m->sigma[k];
  return ERR_OK;
}

static err_t prepare_queries(const struct model *model, const struct kernels *kernels,
                             const struct query *const *queries, size_t n, struct region *region,
                             struct prepared_queries **prepared)
{
  const struct vector_model *m = vector_model_of(model);
  struct vector_query *out;
  double *q;

  TRY(region_array(region, n, sizeof *out, &out));
  TRY(region_array(region, n * m->row_dim, sizeof *q, &q));
  if (m->u)
    TRY(rotate_queries(m, kernels, queries, n, region, q));
  for (size_t i = 0; i < n; i++) {
    out[i].vector = queries[i]->vector.v;
    out[i].q = q + i * m->row_dim;
    if (!m->u)
      vector_query_weigh(m, out[i].vector, out[i].q);
    TRY(vector_query_sketch(m, out[i].q, m->row_dim, region, &out[i].sketch));
  }
  *prepared = (struct prepared_queries *)out;
  return ERR_OK;
}

#define VECTOR_SIMILARITY(KIND, stem, check, table)                \
  const struct similarity similarity_##stem = {                    \
    .kind = SIMILARITY_##KIND,                                     \
    .name = #stem,                                                 \
    .methods = &(table),                                           \
    .model_open = vector_model_open_##stem,                        \
    .model_close = vector_model_close,                             \
    .model_check = (check),                                        \
    .check_part = check_part,                                      \
    .check_query = check_query,                                    \
    .lengths = lengths,                                            \
    .prepared_bytes = prepared_bytes,                              \
    .prepare_parts = prepare_parts,                                \
    .parts_per_piece = PREPARE_CHUNK,                              \
    .has_alike_queries = SIMILARITY_##KIND != SIMILARITY_BILINEAR, \
    .prepared_query_bytes = sizeof(struct vector_query),           \
    .prepare_queries = prepare_queries,                            \
  }

VECTOR_SIMILARITY(DOT, dot, NULL, vector_methods);
VECTOR_SIMILARITY(COSINE, cosine, NULL, vector_methods);
VECTOR_SIMILARITY(WEIGHTED_DOT, weighted_dot, NULL, vector_methods);
VECTOR_SIMILARITY(BILINEAR, bilinear, vector_model_check_bilinear, bilinear_methods);
