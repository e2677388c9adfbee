/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ columns in host memory. They keep each code three times: by item, by split, and in cells over pairs of splits.
 * A space without cells (recjpq_model.h) keeps codes by split only. */
#ifndef ENGINE_RECJPQ_RECJPQ_COLUMNS_H
#define ENGINE_RECJPQ_RECJPQ_COLUMNS_H

#include <assert.h>

#include "engine/recjpq/cells.h"
#include "engine/recjpq/recjpq_model.h"
#include "engine/recjpq/recjpq_present.h"
#include "engine/similarity/columns.h"

enum { RECJPQ_BLOCK_ITEMS = PQ_BLOCK_ITEMS };

struct recjpq_columns {
  struct columns base;
  const struct recjpq_model *model;
  size_t capacity;
  uint8_t *codes;  /* [capacity][M]: by item, to score single slots; NULL without cells */
  uint8_t *planes; /* [capacity / RECJPQ_BLOCK_ITEMS][M][RECJPQ_BLOCK_ITEMS]: by split, for the exhaustive scan */
  struct cells cells;
  struct recjpq_present *present; /* what is known of filters */
};

/* Return where a slot's code in split 0 lies in `planes`; the next split's is RECJPQ_BLOCK_ITEMS further. */
static inline uint8_t *recjpq_plane_of(const struct recjpq_columns *c, size_t slot)
{
  size_t block = slot / RECJPQ_BLOCK_ITEMS * RECJPQ_BLOCK_ITEMS;

  return c->planes + block * c->model->n_splits + (slot - block);
}

/* Find where the codes of n splits are. first: that of an item in split 0; splits, rows [n]. */
static inline void recjpq_find_rows(const uint8_t *first, const uint8_t *splits, size_t n, const uint8_t **rows)
{
  for (size_t i = 0; i < n; i++)
    rows[i] = first + (size_t)splits[i] * RECJPQ_BLOCK_ITEMS;
}

/* Read the codes of a slot. codes [M]. */
static inline void recjpq_codes_read(const struct recjpq_columns *c, size_t slot, uint8_t *codes)
{
  const uint8_t *plane = recjpq_plane_of(c, slot);

  for (size_t m = 0; m < c->model->n_splits; m++)
    codes[m] = plane[m * RECJPQ_BLOCK_ITEMS];
}

static inline const struct recjpq_columns *recjpq_columns_of(const struct columns *columns)
{
  assert(columns->ops == &recjpq_columns_cpu);
  return (const struct recjpq_columns *)columns;
}

/* Return the score of an item: its sub-items' scores, added in the order of the splits (Equation 5). Every method
 * returns exactly this sum, to the last bit. The item's codes are codes[0], codes[step], ... */
static inline float recjpq_score_by_step(const float *subitem_scores, const uint8_t *codes, size_t step,
                                         size_t n_splits)
{
  float score = subitem_scores[codes[0]];

  for (size_t m = 1; m < n_splits; m++)
    score += subitem_scores[m * PQ_SUBITEMS + codes[m * step]];
  return score;
}

static inline float recjpq_score(const float *subitem_scores, const uint8_t *codes, size_t n_splits)
{
  return recjpq_score_by_step(subitem_scores, codes, 1, n_splits);
}

#endif
