/* SPDX-License-Identifier: Apache-2.0 */
/* Method `pqtopk`: every item's score is the sum of its sub-items' scores (RecJPQPrune paper, section 3.2).
 *
 * Every item is looked at, but most are only filtered: a sum of bytes bounds the score (recjpq_deficits.h) and skips
 * items that cannot reach the K-th best score found so far. Scores are computed only for the items that pass.
 */
#include "engine/receipt.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_scan.h"

err_t recjpq_search_pqtopk(const struct columns *columns, struct search_batch *batch)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  size_t n_slots = batch->n_items > 0 ? batch->n_slots : 0;
  struct recjpq_search *searches;

  TRY(region_array(batch->scratch, batch->n, sizeof *searches, &searches));
  for (size_t q = 0; n_slots > 0 && q < batch->n; q++)
    TRY(recjpq_search_init(c, batch, q, &recjpq_rule_usual, &searches[q]));
  /* All queries scan a block in turn: its codes stay in cache. */
  for (size_t first = 0; first < n_slots; first += RECJPQ_BLOCK_ITEMS) {
    for (size_t q = 0; q < batch->n; q++)
      recjpq_scan_block(&searches[q], first, n_slots);
  }
  for (size_t q = 0; q < batch->n; q++)
    receipt_exact(&batch->results[q], batch->n_items);
  return ERR_OK;
}
