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
  struct sketch sketch;
};

/* Cast columns that vector_columns_cpu has opened. */
static inline const struct vector_columns *vector_columns_of(const struct columns *columns)
{
  assert(columns->ops == &vector_columns_cpu);
  return (const struct vector_columns *)columns;
}

/* A chunk: slots that a search handles in one step, at most VECTOR_CHUNK_ITEMS. All queries of a batch share what is
 * read of it. */
enum { VECTOR_CHUNK_ITEMS = 1024 };

/* An order of all chunks that jumps back and forth through the slots. Neighbours in the catalogue are often similar,
 * and the first chunks should be a fair sample. */
struct vector_chunks {
  size_t n_slots;
  size_t n_items; /* slots in a chunk: a multiple of 64, so that it begins with a word of bits */
  size_t n;
  size_t step;
};

struct vector_chunk {
  size_t first; /* slot */
  size_t n;     /* slots */
};

/* Divide all slots into chunks, and get the i-th chunk in their order. */
struct vector_chunks vector_chunks_of(const struct vector_columns *c, size_t n_slots);
struct vector_chunk vector_chunk_at(const struct vector_chunks *chunks, size_t i);

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
