/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of dot, cosine, weighted_dot and bilinear spaces in host memory. */
#ifndef ENGINE_VECTOR_VECTOR_COLUMNS_H
#define ENGINE_VECTOR_VECTOR_COLUMNS_H

#include <assert.h>

#include "engine/similarity/columns.h"
#include "engine/vector/vector_model.h"

struct vector_columns {
  struct columns base;
  const struct vector_model *model;
  size_t capacity;
  float *rows;  /* [capacity][row_dim]: b */
  float *norms; /* [capacity]: |b|, rounded up; only bilinear spaces have them */
  struct vector_sketch sketch;
};

/* Cast columns that vector_columns_cpu has opened. */
static inline const struct vector_columns *vector_columns_of(const struct columns *columns)
{
  assert(columns->ops == &vector_columns_cpu);
  return (const struct vector_columns *)columns;
}

static inline const float *vector_row(const struct vector_columns *c, size_t slot)
{
  return c->rows + slot * c->model->row_dim;
}

/* Return q'^T b over the first n numbers. If n is row_dim, it is the score. */
static inline double vector_dot(const struct vector_columns *c, const struct kernels *kernels, const double *q,
                                size_t n, size_t slot)
{
  return kernels->dot_f64(q, vector_row(c, slot), n);
}

/* Prefetch the first n numbers of a row. The rows to be scored are scattered in memory. */
static inline void vector_prefetch(const struct vector_columns *c, size_t n, size_t slot)
{
  const char *row = (const char *)vector_row(c, slot);

  for (size_t at = 0; at < n * sizeof(float); at += 64)
    __builtin_prefetch(row + at);
}

#endif
