/* SPDX-License-Identifier: Apache-2.0 */
/* Methods `per_embedding`, `average` and `combined`: Algorithm 2 of the MoL paper (section 3.2). Dot products select
 * candidates, and the K best candidates by score are returned.
 *
 *   TopKPerEmbedding(N)    the N best items of each pair of components
 *   TopKAvg(N)             the N best items by the averaged vectors
 *   CombTopK(N1, N2)       the union of both
 *
 * An item outside every pair's list has no dot product above the largest N-th best one. Since phi is a convex
 * combination of logits, this bounds its score: it is the receipt of the first and the third method. The mean of an
 * item's logits does not bound the largest one, so the receipt of TopKAvg is the highest score that any item could
 * have.
 */
#include <math.h>

#include "engine/mol/mol_bound.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_methods.h"
#include "engine/search/receipt.h"

/* BruteForceTopKMoL(q, G, K). nth_best [n]: the largest dot product that an item outside G may have. */
static err_t score_candidates(const struct mol_columns *c, struct search_batch *batch, uint64_t *const *candidates,
                              const float *nth_best)
{
  const struct mol_query *queries = mol_queries_of(batch->prepared);
  struct mol_tile tile;

  TRY(mol_tile_init(c, batch->scratch, &tile));
  for (size_t q = 0; q < batch->n; q++) {
    struct search_result *result = &batch->results[q];
    struct mol_scorer scorer;
    TRY(mol_scorer_init(c, batch, q, &tile, &scorer));
    mol_scorer_add_set(&scorer, candidates[q], bits_words(batch->n_slots));
    result->counts.candidates = scorer.n_added;
    result->counts.scored = scorer.n_scored;
    receipt_bounded(result, batch->n_items, result->admit.n_admitted - scorer.n_added,
                    mol_bound_score_from_dot(&c->model->shape, &queries[q], nth_best[q]));
  }
  return ERR_OK;
}

static size_t list_length(const struct search_batch *batch, uint32_t n)
{
  return n < batch->n_slots ? n : batch->n_slots ? batch->n_slots : 1;
}

/* Search all items: the lists have room for every one. */
static err_t search_all(const struct mol_columns *c, struct search_batch *batch, uint64_t *const *candidates,
                        float *nth_best)
{
  for (size_t q = 0; q < batch->n; q++) {
    mol_candidates_all(batch, q, candidates[q]);
    nth_best[q] = -INFINITY;
  }
  return score_candidates(c, batch, candidates, nth_best);
}

/* n_pairs, n_average   lengths of the lists; 0: do not use this kind of list */
static err_t search(const struct mol_columns *c, struct search_batch *batch, uint32_t n_pairs, uint32_t n_average)
{
  uint64_t **candidates;
  size_t *n_best;
  float *nth_best;

  TRY(mol_candidates_init(batch, &candidates));
  TRY(region_array(batch->scratch, batch->n, sizeof *n_best, &n_best));
  TRY(region_array(batch->scratch, batch->n, sizeof *nth_best, &nth_best));
  for (size_t q = 0; q < batch->n; q++) {
    n_best[q] = list_length(batch, n_pairs);
    nth_best[q] = INFINITY;
  }
  if (n_pairs >= batch->n_items)
    return search_all(c, batch, candidates, nth_best);
  if (n_pairs)
    TRY(mol_candidates_of_pairs(c, batch, n_best, candidates, nth_best));
  if (n_average)
    TRY(mol_candidates_of_average(c, batch, list_length(batch, n_average), candidates));
  return score_candidates(c, batch, candidates, nth_best);
}

err_t mol_search_average(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  return search(c, batch, 0, batch->method->args[0]);
}

err_t mol_search_per_embedding(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  return search(c, batch, batch->method->args[0], 0);
}

err_t mol_search_combined(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  return search(c, batch, batch->method->args[0], batch->method->args[1]);
}

err_t mol_search_admitted(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  return search(c, batch, UINT32_MAX, 0);
}
