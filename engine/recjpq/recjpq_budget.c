/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts what the rings of a query will cost, from the threshold that its hits promise. */
#include "engine/recjpq/recjpq_budget.h"

#include <math.h>

#include "base/size.h"
#include "engine/recjpq/recjpq_admitted.h"

enum {
  CELLS_PER_HIT = 3,  /* for each of the K, cells score more items than a scan; scoring them costs as much as this */
  SLOTS_PER_ITEM = 2, /* filtering an item of a visited cell costs as much as scanning this many slots */
  TRIAL = 32,         /* the rings' cost after this part of the time of a scan is known well enough to choose */
};

/* Number of slots that are scanned in the time of the faster scan. */
static size_t n_slots_scanned(const struct admit *admit, size_t n_slots)
{
  return recjpq_admits_few(admit, n_slots) ? (size_t)admit->n_admitted * RECJPQ_SLOTS_PER_ADMITTED : n_slots;
}

static size_t cost_of_scan(const struct recjpq_search *s, const struct search_batch *batch,
                           const struct recjpq_rule *rule)
{
  const struct recjpq_model *model = s->columns->model;
  size_t n_cells = model->n_subitems * (model->n_splits > 1 ? model->n_subitems : 1);
  size_t per_cell = rule->slots_per_cell == RECJPQ_BY_KERNELS ? s->kernels->pq_slots_per_cell : rule->slots_per_cell;

  if (per_cell == 0)
    return SIZE_MAX / 4; /* twice this can be counted, too */
  size_t n =
      n_slots_scanned(&s->result->admit, batch->n_slots) / (per_cell + SLOTS_PER_ITEM * batch->n_items / n_cells);
  return n - size_min(n / 2, CELLS_PER_HIT * s->result->topk.k);
}

err_t recjpq_budget_init(const struct recjpq_search *s, const struct search_batch *batch,
                         const struct recjpq_rule *rule, struct recjpq_budget *out)
{
  out->n_scan = cost_of_scan(s, batch, rule);
  out->n_unchecked = s->is_guess ? 0 : out->n_scan / TRIAL; /* a guess is nearly final from the start */
  out->n_before_look = s->result->counts.candidates;
  /* With a filter, the few admitted items that were found at first hardly tell how far the threshold will rise, and the
   * next look comes soon: so twice the cost of a scan is tolerated. A guess tells it from the start. */
  out->n_tolerated = s->admits_most || s->is_guess ? out->n_scan : 2 * out->n_scan;
  return kth_best_init(s->result->topk.k, batch->scratch, &out->found);
}

/* What the rings have cost until now. With a filter, items that are scored but not admitted raise no threshold, and a
 * query that dislikes what is admitted meets many of them. Scoring one costs about as much as visiting a cell. */
static size_t n_spent(const struct recjpq_search *s, size_t n_visited)
{
  return n_visited + (s->admits_most ? 0 : s->result->counts.candidates);
}

bool recjpq_budget_is_due(const struct recjpq_budget *b, const struct recjpq_search *s, size_t n_visited, size_t n_next)
{
  return n_spent(s, n_visited) + n_next > b->n_unchecked;
}

/* Return the score that the K-th best item will have, judged by the items found so far. Suppose that the levels of such
 * an item are spread over the pairs at random. While the rings have yet to cover the part x of the limit, all pairs
 * have missed it with probability x^(pairs - 1) at most. The others have been found. */
static float predict_threshold(struct recjpq_budget *b, const struct recjpq_search *s, const struct recjpq_rings *rings)
{
  const struct topk *found = &s->result->topk;
  const struct recjpq_hits *hits = &s->hits;
  double x = (double)recjpq_rings_left(rings, s->deficits.limit) / (s->deficits.limit + 1), missed = 1;

  for (size_t i = 1; i < rings->n_pairs; i++)
    missed *= x;
  kth_best_restart(&b->found, 1 + (size_t)((double)(found->k - 1) * (1 - missed)));
  for (size_t i = 0; i < found->n; i++)
    kth_best_add(&b->found, found->heap[i].score);
  for (size_t i = 0; i < hits->n; i++)
    kth_best_add(&b->found, hits->entries[i].score);
  kth_best_cut(&b->found);
  return fmaxf(fmaxf(recjpq_threshold(s), s->expected), b->found.threshold);
}

/* Estimate what the cells of a limit will cost. Above `most`, counting stops. The best cells come first. So suppose
 * that each doubling of the cells meets as many items to score as were met since the last look. */
static size_t predict_cost(const struct recjpq_budget *b, const struct recjpq_search *s,
                           const struct recjpq_rings *rings, size_t n_visited, int limit, size_t most)
{
  size_t n_cells = recjpq_rings_count(rings, limit, most);

  if (s->admits_most || n_visited == 0 || n_cells == 0)
    return n_cells;
  double n_doublings = log2((double)(n_visited + n_cells) / (double)n_visited);
  return n_cells + (size_t)(n_doublings * (double)(s->result->counts.candidates - b->n_before_look));
}

bool recjpq_budget_allows(struct recjpq_budget *b, const struct recjpq_search *s, const struct recjpq_rings *rings,
                          size_t n_visited)
{
  const struct recjpq_deficits *d = &s->deficits;
  size_t most = b->n_tolerated;

  if (recjpq_rings_left(rings, d->limit) <= 0)
    return true; /* the threshold has risen so far that nothing is left */
  int predicted = recjpq_deficits_limit(d, predict_threshold(b, s, rings));
  if (predict_cost(b, s, rings, n_visited, predicted, most) > most)
    return false;
  /* The threshold only rises. So if there is time even for the cells that the present one needs, do not ask again. */
  bool is_sure = predict_cost(b, s, rings, n_visited, d->limit, b->n_scan) <= b->n_scan;
  b->n_unchecked = is_sure ? SIZE_MAX : 2 * n_spent(s, n_visited);
  b->n_before_look = s->result->counts.candidates;
  b->n_tolerated -= (b->n_tolerated - b->n_scan) / 2;
  return true;
}
