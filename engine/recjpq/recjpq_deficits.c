/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of deficits as bytes, and the order in which the scan reads them. */
#include "engine/recjpq/recjpq_deficits.h"

#include <math.h>

float recjpq_deficits_lane_best(const struct recjpq_deficits *d, size_t split, size_t n)
{
  float best[PQ_LANES];

  if (n > PQ_LANES)
    return -INFINITY;
  for (size_t i = 0; i < PQ_LANES; i++) { /* insertion sort */
    float x = d->lane_best[split * PQ_LANES + i];
    size_t at = i;
    for (; at > 0 && best[at - 1] < x; at--)
      best[at] = best[at - 1];
    best[at] = x;
  }
  return best[n - 1];
}

err_t recjpq_deficits_init(const struct recjpq_model *model, const struct kernels *kernels,
                           const struct recjpq_subitems *subitems, struct region *scratch, struct recjpq_deficits *out)
{
  struct recjpq_deficits d = {
    .n_splits = model->n_splits,
    .n_subitems = model->n_subitems,
    .kernels = kernels,
    .subitems = *subitems,
  };
  double size = 0;
  float largest;

  TRY(region_array(scratch, d.n_splits, sizeof *d.best, &d.best));
  TRY(region_array(scratch, d.n_splits * PQ_LANES, sizeof *d.lane_best, &d.lane_best));
  TRY(region_array(scratch, d.n_splits, sizeof *d.n_used, &d.n_used));
  TRY(region_array(scratch, d.n_splits, 1, &d.order));
  TRY(region_array(scratch, d.n_splits, sizeof *d.sorted, &d.sorted));
  TRY(region_aligned(scratch, d.n_splits, PQ_SUBITEMS, &d.tables));
  for (size_t m = 0; m < d.n_splits; m++) {
    d.n_used[m] = kernels->pq_best(subitems->scores + m * PQ_SUBITEMS, subitems->lengths + m * d.n_subitems,
                                   d.n_subitems, d.lane_best + m * PQ_LANES, &largest);
    d.best[m] = -INFINITY;
    for (size_t i = 0; i < PQ_LANES; i++)
      d.best[m] = d.lane_best[m * PQ_LANES + i] > d.best[m] ? d.lane_best[m * PQ_LANES + i] : d.best[m];
    d.best_sum += (double)d.best[m];
    size += (double)largest;
  }
  d.best_sum += (double)d.n_splits * 0x1p-24 * size;
  *out = d;
  return ERR_OK;
}

/* Insert a split into the order by the levels that all items together lose in it. lost [n]: of the splits before. */
static void insert_split(struct recjpq_deficits *d, uint64_t *lost, size_t n, size_t split, uint64_t loses)
{
  size_t at = n;

  for (; at > 0 && lost[at - 1] < loses; at--) {
    lost[at] = lost[at - 1];
    d->order[at] = d->order[at - 1];
  }
  lost[at] = loses;
  d->order[at] = (uint8_t)split;
}

void recjpq_deficits_quantise(struct recjpq_deficits *d, float threshold)
{
  double gap = fmax(d->best_sum - (double)threshold, 1e-30);
  size_t n_subitems = d->n_subitems;
  uint64_t lost[RECJPQ_SPLITS_MAX];

  d->scale = isinf(threshold) ? 0.0f : (float)(RECJPQ_LEVELS / gap);
  /* A sub-item without items may score above the best; its level is 0. */
  for (size_t m = 0; m < d->n_splits; m++)
    insert_split(d, lost, m, m,
                 d->kernels->pq_levels(d->subitems.scores + m * PQ_SUBITEMS, d->best[m], d->scale,
                                       d->subitems.lengths + m * n_subitems, n_subitems, d->tables + m * PQ_SUBITEMS));
  for (size_t m = 0; m < d->n_splits; m++)
    d->sorted[m] = recjpq_deficits_table(d, d->order[m]);
  recjpq_deficits_tighten(d, threshold);
}

void recjpq_deficits_others(const struct recjpq_deficits *d, const struct cell_pair *p, const uint8_t **tables,
                            uint8_t *rows)
{
  size_t n = 0;

  for (size_t i = 0; i < d->n_splits; i++) {
    size_t m = d->order[i];
    if (m - p->first < p->n_splits) /* also false if m < first: it wraps */
      continue;
    tables[n] = d->sorted[i];
    rows[n++] = (uint8_t)(m < p->first ? m : m - p->n_splits);
  }
}

uint8_t recjpq_deficits_limit(const struct recjpq_deficits *d, float threshold)
{
  double limit = RECJPQ_LEVELS;

  if (!isinf(threshold))
    limit = fmax((d->best_sum - (double)threshold) * (double)d->scale * (1 + 1e-6), 0);
  return (uint8_t)(limit < RECJPQ_LEVELS ? limit : RECJPQ_LEVELS);
}

void recjpq_deficits_tighten(struct recjpq_deficits *d, float threshold)
{
  d->limit = recjpq_deficits_limit(d, threshold);
}
