/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the cells of rings without visiting them: sub-items are sorted by level, so a row of cells is a difference of
 * two numbers. */
#include "engine/recjpq/recjpq_rings.h"

enum { RING_LEVELS = 8 }; /* of a ring */

/* Number of cells of levels from `from` to `to` - 1. */
static size_t count_cells(const struct recjpq_ring_pair *p, int from, int to)
{
  size_t n = 0, n_rows = recjpq_levels_below(p->a, to);

  if (!p->b)
    return n_rows - recjpq_levels_below(p->a, from);
  for (size_t i = 0; i < n_rows; i++) {
    int level = p->table_a[p->a->subitems[i]];
    n += recjpq_levels_below(p->b, to - level) - recjpq_levels_below(p->b, from - level);
  }
  return n;
}

void recjpq_rings_set_next(struct recjpq_ring_pair *p, int next)
{
  int end = next + RING_LEVELS < PQ_SUBITEMS ? next + RING_LEVELS : PQ_SUBITEMS - 1;

  p->next = next;
  p->next_cells = count_cells(p, next, end);
}

int recjpq_rings_left(const struct recjpq_rings *r, int limit)
{
  int left = limit + 1;

  for (size_t i = 0; i < r->n_pairs; i++)
    left -= r->pairs[i].next;
  return left;
}

struct recjpq_ring_pair *recjpq_rings_cheapest(const struct recjpq_rings *r)
{
  struct recjpq_ring_pair *best = &r->pairs[0];

  for (size_t i = 1; i < r->n_pairs; i++) {
    if (r->pairs[i].next_cells < best->next_cells)
      best = &r->pairs[i];
  }
  return best;
}

int recjpq_rings_end(const struct recjpq_ring_pair *p, int left)
{
  int end = p->next + (left < RING_LEVELS ? left : RING_LEVELS);

  return end < PQ_SUBITEMS ? end : PQ_SUBITEMS - 1;
}

size_t recjpq_rings_count(const struct recjpq_rings *r, int limit, size_t most)
{
  struct recjpq_ring_pair pairs[(RECJPQ_SPLITS_MAX + 1) / 2];
  const struct recjpq_rings copy = { pairs, r->n_pairs };
  size_t n = 0;

  memcpy(pairs, r->pairs, r->n_pairs * sizeof *pairs);
  for (int left = recjpq_rings_left(&copy, limit); left > 0 && n <= most; left = recjpq_rings_left(&copy, limit)) {
    struct recjpq_ring_pair *p = recjpq_rings_cheapest(&copy);
    n += p->next_cells;
    recjpq_rings_set_next(p, recjpq_rings_end(p, left));
  }
  return n;
}

static err_t init_pair(const struct recjpq_deficits *d, const struct cell_pair *cells,
                       const struct recjpq_levels *levels, struct region *scratch, struct recjpq_ring_pair *p)
{
  p->cells = cells;
  p->a = &levels[cells->first];
  p->table_a = recjpq_deficits_table(d, cells->first);
  if (cells->n_splits == 2) {
    p->b = p->a + 1;
    p->table_b = recjpq_deficits_table(d, cells->first + 1);
  }
  TRY(region_array(scratch, cells->n_others, sizeof *p->others, &p->others));
  TRY(region_array(scratch, cells->n_others, 1, &p->rows));
  recjpq_deficits_others(d, cells, p->others, p->rows);
  recjpq_rings_set_next(p, 0);
  return ERR_OK;
}

err_t recjpq_rings_init(const struct recjpq_deficits *d, const struct cells *cells, struct region *scratch,
                        struct recjpq_rings *out)
{
  struct recjpq_levels *levels;

  TRY(region_array(scratch, cells->n_splits, sizeof *levels, &levels));
  for (size_t m = 0; m < cells->n_splits; m++)
    recjpq_levels_sort(recjpq_deficits_table(d, m), d->subitems.lengths + m * cells->n_subitems, cells->n_subitems,
                       &levels[m]);
  TRY(region_array(scratch, cells->n_pairs, sizeof *out->pairs, &out->pairs));
  out->n_pairs = cells->n_pairs;
  for (size_t i = 0; i < cells->n_pairs; i++)
    TRY(init_pair(d, &cells->pairs[i], levels, scratch, &out->pairs[i]));
  return ERR_OK;
}
