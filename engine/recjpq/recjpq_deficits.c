/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of deficits as bytes, and the order in which the scan reads them. */
#include "engine/recjpq/recjpq_deficits.h"

#include <math.h>

enum { TABLE_ALIGN = 64 };

/* Return the best score of a split. Add the largest absolute score to `size`. */
static float best_of(const struct cells *cells, const float *scores, size_t split, double *size)
{
  float best = -INFINITY, largest = 0;

  for (size_t b = 0; b < cells->n_subitems; b++) {
    if (cells->lengths[split * cells->n_subitems + b] == 0)
      continue;
    best = scores[b] > best ? scores[b] : best;
    largest = fabsf(scores[b]) > largest ? fabsf(scores[b]) : largest;
  }
  *size += (double)largest;
  return best;
}

err_t recjpq_deficits_init(const struct cells *cells, const float *subitem_scores, struct region *scratch,
                           struct recjpq_deficits *out)
{
  struct recjpq_deficits d = { .n_splits = cells->n_splits, .cells = cells, .subitem_scores = subitem_scores };
  uint8_t *bytes;
  double size = 0;

  TRY(region_array(scratch, d.n_splits, sizeof *d.best, &d.best));
  TRY(region_array(scratch, d.n_splits, sizeof *d.splits, &d.splits));
  TRY(region_array(scratch, d.n_splits, 1, &d.numbers));
  TRY(region_array(scratch, d.n_splits, 1, &d.order));
  TRY(region_array(scratch, d.n_splits, sizeof *d.sorted, &d.sorted));
  TRY(region_array(scratch, d.n_splits * PQ_SUBITEMS + TABLE_ALIGN, 1, &bytes));
  d.tables = bytes + (-(uintptr_t)bytes & (TABLE_ALIGN - 1));
  for (size_t m = 0; m < d.n_splits; m++) {
    d.splits[m] = recjpq_deficits_table(&d, m);
    d.numbers[m] = (uint8_t)m;
    d.best[m] = best_of(cells, subitem_scores + m * PQ_SUBITEMS, m, &size);
    d.best_sum += (double)d.best[m];
  }
  d.best_sum += (double)d.n_splits * 0x1p-24 * size;
  *out = d;
  return ERR_OK;
}

static void write_table(const float *scores, float best, float scale, uint8_t *table)
{
  for (size_t b = 0; b < PQ_SUBITEMS; b++) {
    float level = (best - scores[b]) * scale;
    /* A sub-item without items may score above the best. The comparison also removes NaN. */
    level = level > 0.0f ? level : 0.0f;
    table[b] = (uint8_t)(int)(level < 255.0f ? level : 255.0f);
  }
}

/* The levels that all items together lose in a split. */
static uint64_t levels_lost(const struct recjpq_deficits *d, size_t split)
{
  const uint32_t *lengths = d->cells->lengths + split * d->cells->n_subitems;
  uint64_t sum = 0;

  for (size_t b = 0; b < d->cells->n_subitems; b++)
    sum += (uint64_t)lengths[b] * recjpq_deficits_table(d, split)[b];
  return sum;
}

static void sort_splits(struct recjpq_deficits *d)
{
  uint64_t lost[RECJPQ_SPLITS_MAX];

  for (size_t m = 0; m < d->n_splits; m++) {
    size_t at = m;
    uint64_t x = levels_lost(d, m);
    for (; at > 0 && lost[at - 1] < x; at--) {
      lost[at] = lost[at - 1];
      d->order[at] = d->order[at - 1];
    }
    lost[at] = x;
    d->order[at] = (uint8_t)m;
  }
  for (size_t m = 0; m < d->n_splits; m++)
    d->sorted[m] = recjpq_deficits_table(d, d->order[m]);
}

void recjpq_deficits_quantise(struct recjpq_deficits *d, float threshold)
{
  double gap = fmax(d->best_sum - (double)threshold, 1e-30);

  d->scale = isinf(threshold) ? 0.0f : (float)(RECJPQ_LEVELS / gap);
  for (size_t m = 0; m < d->n_splits; m++)
    write_table(d->subitem_scores + m * PQ_SUBITEMS, d->best[m], d->scale, d->tables + m * PQ_SUBITEMS);
  sort_splits(d);
  recjpq_deficits_tighten(d, threshold);
}

void recjpq_deficits_tighten(struct recjpq_deficits *d, float threshold)
{
  double limit = RECJPQ_LEVELS;

  if (!isinf(threshold))
    limit = fmax((d->best_sum - (double)threshold) * (double)d->scale * (1 + 1e-6), 0);
  d->limit = (uint8_t)(limit < RECJPQ_LEVELS ? limit : RECJPQ_LEVELS);
}
