/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ columns in host memory: codes by item, codes by split, and cells over pairs of splits. */
#ifndef ENGINE_RECJPQ_RECJPQ_COLUMNS_H
#define ENGINE_RECJPQ_RECJPQ_COLUMNS_H

#include "engine/recjpq/cells.h"
#include "engine/columns.h"
#include "engine/recjpq/recjpq_model.h"

enum { RECJPQ_BLOCK_ITEMS = PQ_BLOCK_ITEMS };

struct recjpq_columns {
  const struct recjpq_model *model;
  size_t capacity;
  uint8_t *codes;  /* [capacity][M]: one item's codes together, for scoring by slot */
  uint8_t *planes; /* [capacity / RECJPQ_BLOCK_ITEMS][M][RECJPQ_BLOCK_ITEMS]: what the exhaustive scan reads */
  struct cells cells;
};

/* The methods, in the files of their names. */
err_t recjpq_search_default(const struct recjpq_columns *c, struct search_batch *batch);
err_t recjpq_search_pqtopk(const struct recjpq_columns *c, struct search_batch *batch);
err_t recjpq_search_prune(const struct recjpq_columns *c, struct search_batch *batch);
err_t recjpq_search_exact(const struct recjpq_columns *c, struct search_batch *batch);

/* The score of an item: its sub-items' scores, added in order of the splits (Equation 5). Every method gives this sum,
 * to the last bit. */
static inline float recjpq_score(const float *subitem_scores, const uint8_t *codes, size_t n_splits)
{
  float score = subitem_scores[codes[0]];

  for (size_t m = 1; m < n_splits; m++)
    score += subitem_scores[m * PQ_SUBITEMS + codes[m]];
  return score;
}

#endif
