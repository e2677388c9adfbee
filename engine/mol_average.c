/* TopKAvg(N) (MoL paper, section 3.2): the N items whose averaged components have the largest dot product with the
 * query's are scored in full.
 *
 * The mean of an item's logits says nothing certain about their largest, so the receipt rests on what can be proven:
 * phi is a convex combination of logits, and a logit is at most |f| |g| / tau with |g| <= 1.
 */
#include <stdlib.h>

#include "engine/mol_columns.h"
#include "engine/receipt.h"

enum { CHUNK_BLOCKS = 64, CHUNK_ITEMS = CHUNK_BLOCKS * DOT_BLOCK_ITEMS };

/* Over 2^-23 times the roundings of a logit and of the weighted mean. */
static const float rounding_slack = 1e-4f;

static void offer(const struct search_result *result, const struct kernels *kernels, const float *scores,
                  uint32_t first, size_t n, struct topk *candidates)
{
  uint32_t passed[CHUNK_ITEMS];
  size_t n_passed = kernels->filter_ge(scores, n, topk_threshold(candidates), passed);

  for (size_t i = 0; i < n_passed; i++) {
    if (admit_slot(&result->admit, first + passed[i]))
      topk_push(candidates, scores[passed[i]], first + passed[i]);
  }
}

/* One pass over the averaged vectors for all queries. candidates [n] */
static void scan_averages(const struct mol_columns *c, struct search_batch *batch, struct topk *candidates)
{
  const struct mol_query *queries = batch->prepared;
  size_t dim = c->model->shape.component_dim;
  float scores[CHUNK_ITEMS];

  for (size_t first = 0; first < batch->n_slots; first += CHUNK_ITEMS) {
    size_t n = batch->n_slots - first < CHUNK_ITEMS ? batch->n_slots - first : CHUNK_ITEMS;
    size_t n_blocks = (n + DOT_BLOCK_ITEMS - 1) / DOT_BLOCK_ITEMS;
    for (size_t q = 0; q < batch->n; q++) {
      batch->kernels->dot_blocks(queries[q].average, dim, c->averages + first * dim, n_blocks, scores);
      offer(&batch->results[q], batch->kernels, scores, (uint32_t)first, n, &candidates[q]);
    }
  }
}

static int by_slot(const void *a, const void *b)
{
  const struct topk_entry *x = a, *y = b;

  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Score the candidates of one query, in order of slot for the memory's sake. */
static void score_candidates(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                             struct topk *candidates, struct mol_tile *tile, struct search_result *result)
{
  uint32_t slots[MOL_LANES];

  qsort(candidates->heap, candidates->n, sizeof *candidates->heap, by_slot);
  for (size_t i = 0; i < candidates->n; i += MOL_LANES) {
    size_t n = candidates->n - i < MOL_LANES ? candidates->n - i : MOL_LANES;
    for (size_t j = 0; j < n; j++)
      slots[j] = candidates->heap[i + j].slot;
    mol_tile_load(c, kernels, slots, n, tile);
    mol_tile_score(c, kernels, query, tile);
    for (size_t j = 0; j < n; j++) {
      if (tile->scores[j] >= topk_threshold(&result->topk))
        topk_push(&result->topk, tile->scores[j], slots[j]);
    }
  }
}

static void finish(const struct mol_columns *c, const struct mol_query *query, uint64_t n_items,
                   const struct topk *candidates, struct search_result *result)
{
  uint64_t n_unscored = n_items - result->admit.n_excluded - candidates->n;
  float bound = c->model->shape.inv_temperature * query->max_norm * (1.0f + rounding_slack);

  result->counts.scored = candidates->n;
  result->counts.candidates = candidates->n;
  receipt_bounded(result, n_items, n_unscored, bound);
}

err_t mol_search_average(const struct mol_columns *c, struct search_batch *batch)
{
  const struct mol_query *queries = batch->prepared;
  size_t n_candidates = batch->method->args[0];
  struct topk *candidates;
  struct mol_tile tile;

  if (n_candidates > batch->n_slots)
    n_candidates = batch->n_slots ? batch->n_slots : 1;
  TRY(region_array(batch->scratch, batch->n, sizeof *candidates, &candidates));
  for (size_t q = 0; q < batch->n; q++) {
    const struct topk *topk = &batch->results[q].topk;
    struct topk_entry *heap;
    TRY(region_array(batch->scratch, n_candidates, sizeof *heap, &heap));
    topk_init(&candidates[q], heap, n_candidates, topk->order, topk->context);
  }
  TRY(mol_tile_init(c, batch->scratch, &tile));
  scan_averages(c, batch, candidates);
  for (size_t q = 0; q < batch->n; q++) {
    score_candidates(c, batch->kernels, &queries[q], &candidates[q], &tile, &batch->results[q]);
    finish(c, &queries[q], batch->n_items, &candidates[q], &batch->results[q]);
  }
  return ERR_OK;
}
