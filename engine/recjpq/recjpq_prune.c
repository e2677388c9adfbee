/* SPDX-License-Identifier: Apache-2.0 */
/* Methods `prune`, `prune_inflated` and `prune_limited`: dynamic pruning over sub-items, safe to rank K (RecJPQPrune
 * paper, section 4, Algorithm 1).
 *
 * Each split's sub-items are visited from the best score down. An item that has not been seen has only sub-items that
 * have not been visited. So the sum over splits of the best score not yet visited is an upper bound on its score
 * (sigma). When the upper bound falls below the K-th best score found (the threshold, theta), no unseen item can enter
 * the top K.
 *
 * Where the paper is silent or loose:
 *   - The upper bound is summed in the order of the splits, as scores are. Rounding is monotone, so it bounds the
 *     rounded scores with no slack.
 *   - An item that is in two visited lists counts once. Otherwise its duplicate would raise the threshold above the
 *     true K-th score.
 *   - Ties are broken by key, so the search goes on while the upper bound equals the threshold.
 *   - Sub-items without items are not in the order. They would only loosen the bound.
 *   - When one split has no sub-item left, every item has been seen.
 *   - Items that the query does not admit never change the threshold.
 *
 * The paper names two unsafe rules and leaves them open (section 4.2). prune_inflated inflates the threshold, and
 * stops when the upper bound falls to it. prune_limited stops after a number of iterations. Their receipts
 * give the highest score that an unseen item may have: the upper bound at the stop.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/recjpq/recjpq_columns.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"

enum { CELLS_AHEAD = 8 }; /* a cell is prefetched this many cells before it is visited */

/* The paper's Q[m] and P[m]: a split's sub-items from best to worst, and how many of them have been visited. */
struct split_order {
  uint8_t subitems[PQ_SUBITEMS];
  uint16_t rank[PQ_SUBITEMS]; /* position of each sub-item in the order */
  size_t n;
  size_t n_visited;
};

struct pruning {
  const struct recjpq_columns *columns;
  const float *subitem_scores;
  struct split_order *splits; /* [M] */
  struct search_result *result;
  uint8_t *codes; /* [M]: scratch memory */
};

/* How a method advances and stops. */
struct prune_rule {
  size_t subitems_per_step;  /* the paper's batch size, BS */
  bool is_safe;              /* false: the paper's condition, with an inflated threshold */
  float inflation;           /* >= 1 */
  uint64_t n_iterations_max; /* iterations of Algorithm 1's loop */
};

struct scored_subitem {
  float score;
  uint32_t subitem;
};

static int best_first(const void *a, const void *b)
{
  const struct scored_subitem *x = a, *y = b;

  if (x->score != y->score)
    return x->score < y->score ? 1 : -1;
  return (x->subitem > y->subitem) - (x->subitem < y->subitem);
}

static void order_split(const struct cells *c, const float *scores, size_t split, struct split_order *order)
{
  struct scored_subitem live[PQ_SUBITEMS];
  size_t n = 0;

  for (uint32_t b = 0; b < c->n_subitems; b++) {
    if (c->lengths[split * c->n_subitems + b])
      live[n++] = (struct scored_subitem){ scores[b], b };
  }
  qsort(live, n, sizeof live[0], best_first);
  for (size_t i = 0; i < n; i++) {
    order->subitems[i] = (uint8_t)live[i].subitem;
    order->rank[live[i].subitem] = (uint16_t)i;
  }
  order->n = n;
  order->n_visited = 0;
}

static bool is_exhausted(const struct pruning *p)
{
  for (size_t m = 0; m < p->columns->model->n_splits; m++) {
    if (p->splits[m].n_visited == p->splits[m].n)
      return true;
  }
  return false;
}

/* The best score among the sub-items that a split has not visited. */
static float next_score(const struct pruning *p, size_t split)
{
  const struct split_order *order = &p->splits[split];

  return p->subitem_scores[split * PQ_SUBITEMS + order->subitems[order->n_visited]];
}

/* Upper bound on the score of any unseen item. No split may be exhausted. */
static float upper_bound(const struct pruning *p)
{
  float bound = next_score(p, 0);

  for (size_t m = 1; m < p->columns->model->n_splits; m++)
    bound += next_score(p, m);
  return bound;
}

/* The split to visit next: the one whose next sub-item scores best. */
static size_t best_split(const struct pruning *p)
{
  size_t best = 0;

  for (size_t m = 1; m < p->columns->model->n_splits; m++) {
    if (next_score(p, m) > next_score(p, best))
      best = m;
  }
  return best;
}

/* Was the item already in a visited list of another split? */
static bool was_seen(const struct pruning *p, const uint8_t *codes, size_t split)
{
  for (size_t m = 0; m < p->columns->model->n_splits; m++) {
    if (m != split && p->splits[m].rank[codes[m]] < p->splits[m].n_visited)
      return true;
  }
  return false;
}

/* Score the items of one cell of the split's list. */
static void visit_cell(struct pruning *p, const struct cell_pair *pair, size_t index, size_t split)
{
  const struct cells *cells = &p->columns->cells;
  struct cell cell = pair->cells[index];

  for (size_t i = 0; i < cell.n; i++) {
    cell_read(cells, pair, index, i, p->codes);
    float score = recjpq_score(p->subitem_scores, p->codes, cells->n_splits);
    if (score < share_threshold(p->result) || was_seen(p, p->codes, split))
      continue;
    uint32_t slot = cell_slots(pair, cell)[i];
    if (admit_slot(&p->result->admit, slot))
      topk_push(&p->result->topk, score, slot);
  }
  p->result->counts.scored += cell.n;
}

/* Score the items of the split's next sub-item. */
static void visit_subitem(struct pruning *p, size_t split)
{
  struct split_order *order = &p->splits[split];
  struct cell_list list = cells_list(&p->columns->cells, split, order->subitems[order->n_visited]);

  for (size_t i = 0; i < list.n; i++) {
    if (i + CELLS_AHEAD < list.n)
      __builtin_prefetch(cell_codes(list.pair, list.pair->cells[list.first + (i + CELLS_AHEAD) * list.step]));
    visit_cell(p, list.pair, list.first + i * list.step, split);
  }
  order->n_visited++;
}

/* The threshold that the rule compares with: the K-th best score, inflated in proportion to its size. */
static float inflated_threshold(const struct pruning *p, const struct prune_rule *rule)
{
  float threshold = topk_threshold(&p->result->topk);

  return isinf(threshold) ? threshold : threshold + (rule->inflation - 1.0f) * fabsf(threshold);
}

/* Can the unseen items be skipped? The safe rule goes on while an unseen item could tie with the K-th best. */
static bool is_done(const struct pruning *p, const struct prune_rule *rule, uint64_t n_iterations)
{
  if (is_exhausted(p) || n_iterations == rule->n_iterations_max)
    return true;
  float bound = upper_bound(p), threshold = inflated_threshold(p, rule);
  if (bound < p->result->min_score)
    return true;
  return rule->is_safe ? bound < threshold : bound <= threshold;
}

static void prune(struct pruning *p, const struct prune_rule *rule)
{
  for (size_t m = 0; m < p->columns->model->n_splits; m++)
    order_split(&p->columns->cells, p->subitem_scores + m * PQ_SUBITEMS, m, &p->splits[m]);
  for (uint64_t n_iterations = 0; !is_done(p, rule, n_iterations); n_iterations++) {
    size_t split = best_split(p);
    for (size_t i = 0; i < rule->subitems_per_step && p->splits[split].n_visited < p->splits[split].n; i++)
      visit_subitem(p, split);
  }
}

/* The answer is exact if every item was returned or seen, or if the bound on unseen items is below the K-th best score.
 * Otherwise the receipt gives that bound. */
static void write_receipt(const struct pruning *p, uint64_t n_items)
{
  struct search_result *result = p->result;

  receipt_exact(result, n_items);
  if (!result->receipt.has_bound || is_exhausted(p) || upper_bound(p) < share_threshold(result))
    return;
  result->receipt = (struct receipt){ .has_bound = true, .bound = upper_bound(p) };
}

static struct prune_rule safe_rule(const struct method *method)
{
  return (struct prune_rule){
    .subitems_per_step = method->args[0], .n_iterations_max = UINT64_MAX, .inflation = 1.0f, .is_safe = true
  };
}

static err_t search(const struct columns *columns, struct search_batch *batch, const struct prune_rule *rule)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  const struct recjpq_query *queries = recjpq_queries_of(batch->prepared);
  struct pruning p = { .columns = c };

  if (!cells_are_complete(&c->cells)) /* the scan is exact, which is more than these methods promise */
    return recjpq_search_pqtopk(columns, batch);
  TRY(region_array(batch->scratch, c->model->n_splits, sizeof *p.splits, &p.splits));
  TRY(region_array(batch->scratch, c->model->n_splits, 1, &p.codes));
  for (size_t q = 0; q < batch->n; q++) {
    p.subitem_scores = queries[q].subitem_scores;
    p.result = &batch->results[q];
    prune(&p, rule);
    write_receipt(&p, batch->n_items);
  }
  return ERR_OK;
}

err_t recjpq_search_prune(const struct columns *columns, struct search_batch *batch)
{
  struct prune_rule rule = safe_rule(batch->method);

  return search(columns, batch, &rule);
}

err_t recjpq_search_prune_inflated(const struct columns *columns, struct search_batch *batch)
{
  struct prune_rule rule = safe_rule(batch->method);

  rule.is_safe = false;
  rule.inflation = (float)batch->method->args[1] / 100.0f;
  return search(columns, batch, &rule);
}

err_t recjpq_search_prune_limited(const struct columns *columns, struct search_batch *batch)
{
  struct prune_rule rule = safe_rule(batch->method);

  rule.n_iterations_max = batch->method->args[1];
  return search(columns, batch, &rule);
}
