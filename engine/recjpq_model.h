/* A RecJPQ model: sub-item embeddings ("centroids") of M splits with up to 256 sub-items each (RecJPQPrune paper,
 * section 3.1).
 *
 * Symbols: M n_splits, B n_subitems, d dim; an item is M codes, one sub-item of each split.
 */
#ifndef ENGINE_RECJPQ_MODEL_H
#define ENGINE_RECJPQ_MODEL_H

#include "engine/safetensors.h"
#include "kernels/kernels.h"

struct recjpq_model {
  size_t n_splits;
  size_t n_subitems;
  size_t split_dim; /* d / M */
  float *centroids; /* [M][d / M][PQ_SUBITEMS]: transposed, zeros behind the last sub-item */
};

/* What a search needs of a query: S[m][b], the score of each sub-item (Equation 3). */
struct recjpq_query {
  float *subitem_scores; /* [M][PQ_SUBITEMS] */
};

err_t recjpq_model_open(const struct safetensors *file, void **out);
void recjpq_model_close(void **model);

#endif
