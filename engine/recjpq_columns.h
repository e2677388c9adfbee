/* RecJPQ columns in host memory: codes and inverted lists. */
#ifndef ENGINE_RECJPQ_COLUMNS_H
#define ENGINE_RECJPQ_COLUMNS_H

#include "engine/columns.h"
#include "engine/postings.h"
#include "engine/recjpq_model.h"

struct recjpq_columns {
  const struct recjpq_model *model;
  size_t capacity;
  uint8_t *codes;  /* [capacity][M]: one item's codes together, for scoring by slot */
  uint8_t *planes; /* [capacity / PQ_BLOCK_ITEMS][M][PQ_BLOCK_ITEMS]: the order that pq_scan() reads */
  struct postings postings;
};

/* The methods: recjpq_pqtopk.c and recjpq_prune.c. */
err_t recjpq_search_pqtopk(const struct recjpq_columns *c, struct search_batch *batch);
err_t recjpq_search_prune(const struct recjpq_columns *c, struct search_batch *batch);

/* The score of an item: its sub-items' scores, added in order of the splits (Equation 2). */
static inline float recjpq_score(const float *subitem_scores, const uint8_t *codes, size_t n_splits)
{
  float score = subitem_scores[codes[0]];

  for (size_t m = 1; m < n_splits; m++)
    score += subitem_scores[m * PQ_SUBITEMS + codes[m]];
  return score;
}

#endif
