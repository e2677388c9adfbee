/* SPDX-License-Identifier: Apache-2.0 */
/* Method `two_pass`: Algorithm 1 of the MoL paper (section 3.1), the exact two-pass search. Comments quote its line
 * numbers.
 *
 * There are three differences. None of them changes the result:
 *   - S is the K-th best score of G, not the lowest one (lines 5-8). The K-th best score of any set of items is at most
 *     the K-th best of all items, so it is a valid threshold. The lowest score of G is far below it and would let
 *     nearly every item pass.
 *   - Logits are dot products divided by the temperature, so dot products are compared with S times the temperature
 *     (line 11). The comparison uses byte sketches, with a slack that misses no item.
 *   - An item is scored at most once, and S rises as the second pass finds better items.
 */
#include <math.h>

#include "engine/mol/mol_bound.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_sketch.h"
#include "engine/receipt.h"

/* State of one query in the second pass. */
struct range_search {
  struct mol_scorer scorer;
  struct mol_query_sketch sketch;
  int32_t *starts; /* [P_q] */
};

/* Lines 1-4: find G, the K best items of each pair of embeddings. */
static err_t first_pass(const struct mol_columns *c, struct search_batch *batch, struct slot_set **candidates)
{
  size_t *n_best;
  float *nth_best;

  TRY(mol_candidates_init(batch, candidates));
  TRY(region_array(batch->scratch, batch->n, sizeof *n_best, &n_best));
  TRY(region_array(batch->scratch, batch->n, sizeof *nth_best, &nth_best));
  for (size_t q = 0; q < batch->n; q++)
    n_best[q] = batch->results[q].topk.k;
  return mol_candidates_of_pairs(c, batch, n_best, *candidates, nth_best);
}

/* Lines 5-8: put the K best items of G into the heap. The worst of them scores S. */
static err_t score_candidates(const struct mol_columns *c, struct search_batch *batch, size_t q,
                              const struct slot_set *candidates, struct mol_tile *tile, struct range_search *out)
{
  const struct mol_query *query = mol_queries_of(batch->prepared) + q;

  TRY(mol_sketch_query(&c->model->shape, query->components, c->residual, batch->scratch, &out->sketch));
  TRY(region_array(batch->scratch, c->model->shape.n_query_components, sizeof *out->starts, &out->starts));
  TRY(mol_scorer_init(c, batch, q, tile, &out->scorer));
  mol_scorer_add_set(&out->scorer, candidates);
  return ERR_OK;
}

/* Lines 9-12: find G', the items of these blocks that have a dot product of S or more. Score those that were not in G.
 */
static void search_range(struct range_search *r, const struct search_batch *batch, const struct slot_set *candidates,
                         const struct admit *admit, size_t first, size_t n_blocks)
{
  const struct mol_columns *c = r->scorer.columns;
  const struct mol_shape *shape = &c->model->shape;
  float score = mol_scorer_threshold(&r->scorer);
  uint16_t masks[SHORTLIST_CHUNK / SKETCH_BLOCK_ITEMS];

  if (score == -INFINITY)
    return; /* G has fewer than K items, so it holds all items */
  mol_sketch_starts(&r->sketch, mol_bound_dot_from_score(shape, r->scorer.query, score), r->starts);
  batch->kernels->mol_any(&r->sketch.rows, shape->n_item_components,
                          c->sketches + first / SKETCH_BLOCK_ITEMS * mol_sketch_block_bytes(c), n_blocks, r->starts,
                          masks);
  for (size_t b = 0; b < n_blocks; b++) {
    for (unsigned mask = masks[b]; mask; mask &= mask - 1) {
      uint32_t slot = (uint32_t)(first + b * SKETCH_BLOCK_ITEMS) + (uint32_t)__builtin_ctz(mask);
      if (slot < batch->n_slots && !slot_set_has(candidates, slot) && admit_slot(admit, slot))
        mol_scorer_add(&r->scorer, slot);
    }
  }
}

static void second_pass(struct range_search *searches, struct search_batch *batch, const struct slot_set *candidates)
{
  for (size_t first = 0; first < batch->n_slots; first += SHORTLIST_CHUNK) {
    size_t rest = batch->n_slots - first, n = rest < SHORTLIST_CHUNK ? rest : SHORTLIST_CHUNK;
    for (size_t q = 0; q < batch->n; q++)
      search_range(&searches[q], batch, &candidates[q], &batch->results[q].admit, first,
                   (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS);
  }
}

err_t mol_search_two_pass(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  struct slot_set *candidates;
  struct range_search *searches;
  struct mol_tile tile;

  TRY(first_pass(c, batch, &candidates));
  TRY(mol_tile_init(c, batch->scratch, &tile));
  TRY(region_array(batch->scratch, batch->n, sizeof *searches, &searches));
  for (size_t q = 0; q < batch->n; q++)
    TRY(score_candidates(c, batch, q, &candidates[q], &tile, &searches[q]));
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].counts.candidates = searches[q].scorer.n_added;
  second_pass(searches, batch, candidates);
  for (size_t q = 0; q < batch->n; q++) {
    mol_scorer_flush(&searches[q].scorer);
    batch->results[q].counts.scored = searches[q].scorer.n_scored;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
