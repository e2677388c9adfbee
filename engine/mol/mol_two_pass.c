/* SPDX-License-Identifier: Apache-2.0 */
/* Method `two_pass`: Algorithm 1 of the MoL paper (section 3.1), the exact two-pass search. Comments quote its line
 * numbers.
 *
 * There are four differences. None of them changes the result:
 *   - S is the K-th best score of G, not the lowest one (lines 5-8). The K-th best score of any set of items is at most
 *     the K-th best of all items, so it is a valid threshold. The lowest score of G is far below it and would let
 *     nearly every item pass.
 *   - Logits are dot products divided by the temperature, so dot products are compared with S times the temperature
 *     (line 11). The comparison uses byte sketches, with a slack that misses no item.
 *   - The second pass is the scan of `exact` with S as its floor. S rises as the scan finds better items, and the scan
 *     stops comparing where too few items are dropped.
 *   - If the first pass does not pay, it is skipped: if G would be much of the catalogue, or if few items could be
 *     dropped anyway. The best items by averaged vectors, which `exact` begins with, tell that at a small cost.
 */
#include <math.h>

#include "engine/mol/mol_bound.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_exact.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_sketch.h"
#include "engine/search/spread.h"

enum {
  SAMPLE_CHUNKS = 16,   /* chunks whose items are tested to see whether comparing pays */
  ITEMS_PER_LISTED = 4, /* skip the first pass if the lists would have room for more than one in four items */
};

/* Count the items of a chunk that have a dot product of `dot` or more. */
static size_t count_survivors(const struct mol_columns *c, const struct search_batch *batch,
                              const struct mol_query_sketch *sketch, int32_t *starts, double dot, size_t first)
{
  size_t rest = batch->n_slots - first, n = rest < SHORTLIST_CHUNK ? rest : SHORTLIST_CHUNK, found = 0;
  size_t n_blocks = (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS;
  uint16_t masks[SHORTLIST_CHUNK / SKETCH_BLOCK_ITEMS];

  mol_sketch_starts(sketch, dot, starts);
  batch->kernels->mol_any(&sketch->rows, c->model->shape.n_item_components, mol_sketch_block_at(c, first), n_blocks,
                          starts, masks);
  for (size_t b = 0; b < n_blocks; b++)
    found += (size_t)__builtin_popcount(masks[b]);
  return found;
}

/* Does a floor drop at least a quarter of the items? A sample of the chunks decides for the batch. */
static err_t is_dropping(const struct mol_columns *c, struct search_batch *batch, const float *floors, bool *out)
{
  const struct mol_shape *shape = &c->model->shape;
  const struct mol_query *queries = mol_queries_of(batch->prepared);
  size_t n_chunks = (batch->n_slots + SHORTLIST_CHUNK - 1) / SHORTLIST_CHUNK, n_tested = 0, n_survivors = 0;
  int32_t *starts;

  TRY(region_array(batch->scratch, shape->n_query_components, sizeof *starts, &starts));
  for (size_t q = 0; q < batch->n; q++) {
    struct spread chunks = spread_over(n_chunks);
    struct mol_query_sketch sketch;
    TRY(mol_sketch_query(shape, queries[q].components, c->residual, batch->scratch, &sketch));
    for (size_t i = 0; i < SAMPLE_CHUNKS && i < n_chunks; i++) {
      n_survivors += count_survivors(c, batch, &sketch, starts, mol_bound_dot_from_score(shape, &queries[q], floors[q]),
                                     spread_next(&chunks) * SHORTLIST_CHUNK);
      n_tested += SHORTLIST_CHUNK;
    }
  }
  *out = n_survivors <= n_tested / 4 * 3;
  return ERR_OK;
}

/* The lists of the whole batch have the same length in most batches, so the longest decides. */
static size_t largest_k(const struct search_batch *batch)
{
  size_t k = 0;

  for (size_t q = 0; q < batch->n; q++)
    k = batch->results[q].topk.k > k ? batch->results[q].topk.k : k;
  return k;
}

static err_t does_first_pass_pay(const struct mol_columns *c, struct search_batch *batch, const float *floors,
                                 bool *out)
{
  *out = false;
  if (c->model->n_logits * largest_k(batch) * ITEMS_PER_LISTED > batch->n_items)
    return ERR_OK;
  *out = true;
  for (size_t q = 0; q < batch->n; q++) {
    if (floors[q] == -INFINITY)
      return ERR_OK; /* unknown */
  }
  return is_dropping(c, batch, floors, out);
}

/* Lines 1-4: find G, the K best items of each pair of embeddings. Lines 5-8: the K-th best score of G is S. */
static err_t first_pass(const struct mol_columns *c, struct search_batch *batch, float *floors)
{
  uint64_t **candidates;
  size_t *n_best;
  float *nth_best;

  TRY(mol_candidates_init(batch, &candidates));
  TRY(region_array(batch->scratch, batch->n, sizeof *n_best, &n_best));
  TRY(region_array(batch->scratch, batch->n, sizeof *nth_best, &nth_best));
  for (size_t q = 0; q < batch->n; q++)
    n_best[q] = batch->results[q].topk.k;
  TRY(mol_candidates_of_pairs(c, batch, n_best, candidates, nth_best));
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].counts.candidates = bits_count(candidates[q], bits_words(batch->n_slots));
  return mol_exact_floors(c, batch, candidates, floors);
}

err_t mol_search_two_pass(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  bool is_worth_it;
  float *floors;

  TRY(region_array(batch->scratch, batch->n, sizeof *floors, &floors));
  TRY(mol_exact_seed(c, batch, floors));
  TRY(does_first_pass_pay(c, batch, floors, &is_worth_it));
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].counts.candidates = batch->n_items; /* what a skipped first pass passes on */
  if (is_worth_it)
    TRY(first_pass(c, batch, floors));
  return mol_exact_scan(c, batch, floors); /* lines 9-12: G', the items with a dot product of S or more */
}
