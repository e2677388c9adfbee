/* SPDX-License-Identifier: Apache-2.0 */
/* Deficits: how far each sub-item's score is below the best of its split, in bytes, so that bytes decide whether an
 * item can be among the K best.
 *
 * With best_m the best score in split m, an item of deficits d_m = best_m - S[m][code_m] has the score
 * sum best_m - sum d_m. It can reach the threshold only if sum d_m <= gap = sum best_m - threshold. Deficits are
 * counted in units of gap / RECJPQ_LEVELS and rounded down, so that their sum is at most the sum of the deficits over
 * the unit: an item whose sum of bytes is above the limit cannot reach the threshold. A byte of 255 alone is above it.
 *
 * Rounding. Let u = 2^-24, A = sum_m max_b |S[m][b]|. The score is a sum of M floats one after the other: it is within
 * (M - 1) u A / (1 - (M - 1) u) of the sum without rounding, which is less than M u A. So an item whose rounded score
 * reaches the threshold has deficits of at most gap = sum best_m - threshold + M u A; the sums here are in double,
 * whose own rounding is lost in the u A that is to spare. A byte is the floor of fl(fl(best - S) * scale), which is at
 * most deficit * scale * (1 + u)^2; hence the limit is floor(gap * scale * (1 + 1e-6)).
 */
#ifndef ENGINE_RECJPQ_RECJPQ_DEFICITS_H
#define ENGINE_RECJPQ_RECJPQ_DEFICITS_H

#include "base/region.h"
#include "engine/recjpq/recjpq_columns.h"

enum { RECJPQ_LEVELS = 254 };

struct recjpq_deficits {
  size_t n_splits;
  const struct cells *cells;
  const float *subitem_scores; /* [M][PQ_SUBITEMS] */
  float *best;                 /* [M] */
  double best_sum;             /* with room for rounding */
  float scale;                 /* levels of one unit of score */
  uint8_t limit;
  uint8_t *tables;        /* [M][PQ_SUBITEMS], aligned to 64 */
  const uint8_t **splits; /* [M]: the table of each split */
  uint8_t *numbers;       /* [M]: 0, 1, ... M - 1 */
  uint8_t *order;         /* [M]: splits, falling by how many levels an item loses in them on average */
  const uint8_t **sorted; /* [M]: the tables in that order */
};

/* Deficits of one query over the sub-items that have items. Tables and limit are not there yet. The columns have at
 * least one item. Returns ERR_MEMORY. */
err_t recjpq_deficits_init(const struct cells *cells, const float *subitem_scores, struct region *scratch,
                           struct recjpq_deficits *out);

/* Write the tables for a threshold, and the limit. Below K hits, -inf: every item passes. */
void recjpq_deficits_quantise(struct recjpq_deficits *d, float threshold);

static inline const uint8_t *recjpq_deficits_table(const struct recjpq_deficits *d, size_t split)
{
  return d->tables + split * PQ_SUBITEMS;
}

/* Lower the limit to a threshold that has risen; tables stay. */
void recjpq_deficits_tighten(struct recjpq_deficits *d, float threshold);

#endif
