/* SPDX-License-Identifier: Apache-2.0 */
/* A RecJPQ model: sub-item embeddings ("centroids") of M splits with up to 256 sub-items each (RecJPQPrune paper,
 * section 3.1).
 *
 * Symbols: M n_splits; B n_subitems; d dim. An item is M codes: one sub-item of each split.
 */
#ifndef ENGINE_RECJPQ_RECJPQ_MODEL_H
#define ENGINE_RECJPQ_RECJPQ_MODEL_H

#include <assert.h>

#include "engine/similarity/similarity.h"
#include "kernels/kernels.h"

enum { RECJPQ_SPLITS_MAX = 64 };

struct recjpq_model {
  struct model base;
  size_t n_splits;
  size_t n_subitems;
  size_t split_dim; /* d / M */
  bool has_cells;   /* false: the space's `cells` are off; columns keep M bytes per item, and all methods scan */
  float *centroids; /* [M][d / M][PQ_SUBITEMS]: transposed, with zeros after the last sub-item */
};

/* A query, prepared for search: its vector and S[m][b], the score of each sub-item (section 3.2). */
struct recjpq_query {
  const float *vector;   /* [d]; belongs to the query */
  float *subitem_scores; /* [M][PQ_SUBITEMS] */
};

static inline const struct recjpq_model *recjpq_model_of(const struct model *model)
{
  assert(model->kind == SIMILARITY_RECJPQ);
  return (const struct recjpq_model *)model;
}

/* Queries that this similarity has prepared. */
static inline const struct recjpq_query *recjpq_queries_of(const struct prepared_queries *prepared)
{
  return (const struct recjpq_query *)prepared;
}

err_t recjpq_model_open(const struct safetensors *file, struct model **out);
void recjpq_model_close(struct model **model);

#endif
