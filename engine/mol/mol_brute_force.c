/* SPDX-License-Identifier: Apache-2.0 */
/* Method `brute_force`: score every item. Each tile of MOL_LANES slots is loaded once for all queries of the batch. */
#include "engine/mol/mol_tile.h"
#include "engine/mol/mol_methods.h"
#include "engine/receipt.h"
#include "engine/share.h"

enum { CLAIM_TILES = 32 }; /* tiles, times queries, that take some 100 us or more: a claim has about as many */

static void search_tile(const struct mol_columns *c, struct search_batch *batch, size_t first, struct mol_tile *tile)
{
  const struct mol_query *queries = mol_queries_of(batch->prepared);
  size_t n = batch->n_slots - first < MOL_LANES ? batch->n_slots - first : MOL_LANES;
  uint32_t slots[MOL_LANES];

  for (size_t i = 0; i < n; i++)
    slots[i] = (uint32_t)(first + i);
  mol_tile_load(c, batch->kernels, slots, n, tile);
  for (size_t q = 0; q < batch->n; q++) {
    mol_tile_score(c, batch->kernels, &queries[q], tile, NULL);
    mol_tile_offer(tile, batch->kernels, (uint32_t)first, n, share_threshold(&batch->results[q]), &batch->results[q]);
  }
}

err_t mol_search_brute_force(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  size_t n_tiles = (batch->n_slots + MOL_LANES - 1) / MOL_LANES;
  size_t n_each = batch->n < CLAIM_TILES ? CLAIM_TILES / batch->n : 1;
  struct share_steps steps;
  struct mol_tile tile;

  TRY(mol_tile_init(c, batch->scratch, &tile));
  while (share_claim(batch, 0, n_tiles, n_each, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++)
      search_tile(c, batch, i * MOL_LANES, &tile);
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->n_items;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
