/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of dot, cosine, weighted_dot and bilinear in host memory. */
#ifndef ENGINE_VECTOR_VECTOR_COLUMNS_H
#define ENGINE_VECTOR_VECTOR_COLUMNS_H

#include <assert.h>

#include "engine/columns.h"
#include "engine/vector/vector_model.h"

struct vector_columns {
  struct columns base;
  const struct vector_model *model;
  size_t capacity;
  float *rows;  /* [capacity][row_dim]: b */
  float *norms; /* [capacity]: |b|, rounded up; bilinear alone has them */
  struct sketch sketch;
};

static inline const struct vector_columns *vector_columns_of(const struct columns *columns)
{
  assert(columns->ops == &vector_columns_cpu);
  return (const struct vector_columns *)columns;
}

/* Slots that are looked at together: queries of a batch share what is read of them. */
enum { VECTOR_CHUNK_BLOCKS = 64, VECTOR_CHUNK_ITEMS = VECTOR_CHUNK_BLOCKS * SKETCH_BLOCK_ITEMS };

/* An order of the chunks of all slots that goes back and forth through them: neighbours in the catalogue are often
 * alike, and the first chunks looked at should be a fair sample. */
struct vector_chunks {
  size_t n_slots;
  size_t n_blocks; /* of a chunk */
  size_t n;
  size_t step;
};

struct vector_chunk {
  size_t first; /* slot */
  size_t n;     /* slots */
  size_t n_blocks;
};

struct vector_chunks vector_chunks_of(const struct vector_columns *c, size_t n_slots);
struct vector_chunk vector_chunk_at(const struct vector_chunks *chunks, size_t i);

static inline const float *vector_row(const struct vector_columns *c, size_t slot)
{
  return c->rows + slot * c->model->row_dim;
}

/* q'^T b over the first n numbers: the score, where n is row_dim. */
static inline double vector_dot(const struct vector_columns *c, const struct kernels *kernels, const double *q,
                                size_t n, size_t slot)
{
  return kernels->dot_f64(q, vector_row(c, slot), n);
}

/* Ask for the first n numbers of a row before they are needed: rows to be scored lie anywhere. */
static inline void vector_prefetch(const struct vector_columns *c, size_t n, size_t slot)
{
  const char *row = (const char *)vector_row(c, slot);

  for (size_t at = 0; at < n * sizeof(float); at += 64)
    __builtin_prefetch(row + at);
}

#endif
