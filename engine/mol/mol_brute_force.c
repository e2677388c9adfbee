/* SPDX-License-Identifier: Apache-2.0 */
/* Method `brute_force`: score every item. Each tile of MOL_LANES slots is loaded once for all queries of the batch. */
#include "engine/mol/mol_tile.h"
#include "engine/mol/mol_methods.h"
#include "engine/receipt.h"

err_t mol_search_brute_force(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  const struct mol_query *queries = mol_queries_of(batch->prepared);
  struct mol_tile tile;
  uint32_t slots[MOL_LANES];

  TRY(mol_tile_init(c, batch->scratch, &tile));
  for (size_t first = 0; first < batch->n_slots; first += MOL_LANES) {
    size_t n = batch->n_slots - first < MOL_LANES ? batch->n_slots - first : MOL_LANES;
    for (size_t i = 0; i < n; i++)
      slots[i] = (uint32_t)(first + i);
    mol_tile_load(c, batch->kernels, slots, n, &tile);
    for (size_t q = 0; q < batch->n; q++) {
      mol_tile_score(c, batch->kernels, &queries[q], &tile, NULL);
      mol_tile_offer(&tile, batch->kernels, (uint32_t)first, n, topk_threshold(&batch->results[q].topk),
                     &batch->results[q]);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->n_items;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
