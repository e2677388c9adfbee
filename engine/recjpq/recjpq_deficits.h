/* SPDX-License-Identifier: Apache-2.0 */
/* Deficits: how far each sub-item's score is below the best score of its split, as bytes. Sums of these bytes decide
 * whether an item can be among the K best.
 *
 * Let best_m be the best score in split m. An item with deficits d_m = best_m - S[m][code_m] has the score sum best_m -
 * sum d_m. It can reach the threshold only if sum d_m <= gap = sum best_m - threshold. Deficits are counted in units of
 * gap / RECJPQ_LEVELS and rounded down. So the sum of an item's bytes is at most its sum of deficits in units. If the
 * sum of bytes is above the limit, the item cannot reach the threshold. A single byte of 255 is always above the limit.
 *
 * Rounding. Let u = 2^-24 and A = sum_m max_b |S[m][b]|. The score adds M floats one after the other, so it is within
 * (M - 1) u A / (1 - (M - 1) u) of the sum without rounding. That is less than M u A. So an item whose rounded score
 * reaches the threshold has deficits of at most gap = sum best_m - threshold + M u A. Here these sums are in double,
 * and the spare u A covers their own rounding. A byte is the floor of fl(fl(best - S) * scale), which is at most
 * deficit * scale * (1 + u)^2. Hence the limit is floor(gap * scale * (1 + 1e-6)).
 */
#ifndef ENGINE_RECJPQ_RECJPQ_DEFICITS_H
#define ENGINE_RECJPQ_RECJPQ_DEFICITS_H

#include "base/region.h"
#include "engine/recjpq/recjpq_narrow.h"

enum { RECJPQ_LEVELS = 254 };

struct recjpq_deficits {
  size_t n_splits, n_subitems;
  const struct kernels *kernels;
  struct recjpq_subitems subitems;
  float *best;      /* [M] */
  float *lane_best; /* [M][PQ_LANES]: the best score of the sub-items b = lane, lane + PQ_LANES, ... */
  size_t *n_used;   /* [M]: sub-items that have items */
  double best_sum;  /* sum of `best`, plus M u A for rounding */
  float scale;      /* levels in one unit of score */
  uint8_t limit;
  uint8_t *tables;        /* [M][PQ_SUBITEMS], aligned to 64 */
  uint8_t *order;         /* [M]: splits, ordered by how many levels an item loses in them on average, most first */
  const uint8_t **sorted; /* [M]: the tables in that order */
};

/* Prepare the deficits of one query over the sub-items that have items. recjpq_deficits_quantise() must be called
 * before tables and limit are used. The columns must have at least one item. Returns ERR_MEMORY. */
err_t recjpq_deficits_init(const struct recjpq_model *model, const struct kernels *kernels,
                           const struct recjpq_subitems *subitems, struct region *scratch, struct recjpq_deficits *out);

/* Compute the tables and the limit for a threshold. A threshold of -inf, with fewer than K hits, lets every item pass.
 */
void recjpq_deficits_quantise(struct recjpq_deficits *d, float threshold);

/* Return a score that at least n sub-items of a split reach, if so many have items; a high one for small n. */
float recjpq_deficits_lane_best(const struct recjpq_deficits *d, size_t split, size_t n);

static inline const uint8_t *recjpq_deficits_table(const struct recjpq_deficits *d, size_t split)
{
  return d->tables + split * PQ_SUBITEMS;
}

/* List the tables of the splits that are not in a pair, in the order of the deficits, and the row of each in the codes
 * of the pair's cells. tables, rows [p->n_others]. */
void recjpq_deficits_others(const struct recjpq_deficits *d, const struct cell_pair *p, const uint8_t **tables,
                            uint8_t *rows);

/* Return the limit that a threshold has with the present tables. */
uint8_t recjpq_deficits_limit(const struct recjpq_deficits *d, float threshold);

/* Lower the limit for a threshold that has risen. The tables stay the same. */
void recjpq_deficits_tighten(struct recjpq_deficits *d, float threshold);

#endif
