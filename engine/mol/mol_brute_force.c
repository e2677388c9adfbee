/* SPDX-License-Identifier: Apache-2.0 */
/* Method `brute_force`: score every item. Each tile of MOL_LANES items is loaded once for all queries of the batch. */
#include "engine/mol/mol_tile.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_walk.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"

enum { CLAIM_TILES = 32 }; /* tiles, times queries, that take some 100 us or more: a claim has about as many */

static void search_tile(const struct mol_columns *c, struct search_batch *batch, const struct mol_walk *walk,
                        size_t first, struct mol_tile *tile)
{
  const struct mol_query *queries = mol_queries_of(batch->prepared);
  uint32_t slots[MOL_LANES];
  size_t n = mol_walk_slots(walk, first, MOL_LANES, slots);

  mol_tile_load(c, batch->kernels, slots, n, tile);
  for (size_t q = 0; q < batch->n; q++) {
    mol_tile_score(c, batch->kernels, &queries[q], tile, NULL);
    mol_tile_offer(tile, batch->kernels, slots, n, share_threshold(&batch->results[q]), &batch->results[q]);
  }
}

err_t mol_search_brute_force(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  size_t n_each = batch->n < CLAIM_TILES ? CLAIM_TILES / batch->n : 1;
  struct share_steps steps;
  struct mol_tile tile;
  struct mol_walk walk;

  TRY(mol_walk_init(c, batch, &walk));
  TRY(mol_tile_init(c, batch->scratch, &tile));
  while (share_claim(batch, 0, (walk.n + MOL_LANES - 1) / MOL_LANES, n_each, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++)
      search_tile(c, batch, &walk, i * MOL_LANES, &tile);
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = walk.n;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
