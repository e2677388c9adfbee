/* SPDX-License-Identifier: Apache-2.0 */
/* Method `pqtopk`: every item's score is the sum of its sub-items' scores (RecJPQPrune paper, section 3.2).
 *
 * Every item is looked at, but most are only filtered: a sum of bytes bounds the score (recjpq_deficits.h) and skips
 * items that cannot reach the K-th best score found so far. Scores are computed only for the items that pass.
 */
#include "engine/receipt.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_scan.h"
#include "engine/share.h"

enum { CLAIM_BLOCKS = 32 }; /* blocks, times queries, that take some 20 us: a claim has about as many */

/* Claim blocks. What other members know raises this one's floors. */
static bool claim_blocks(struct search_batch *batch, struct recjpq_search *searches, size_t n_slots,
                         struct share_steps *steps)
{
  size_t n_blocks = (n_slots + RECJPQ_BLOCK_ITEMS - 1) / RECJPQ_BLOCK_ITEMS;
  size_t n_each = batch->n < CLAIM_BLOCKS ? CLAIM_BLOCKS / batch->n : 1;

  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].floor = recjpq_threshold(&searches[q]);
  bool has_steps = share_claim(batch, 0, n_blocks, n_each, steps);
  for (size_t q = 0; q < batch->n; q++)
    searches[q].floor = batch->results[q].floor;
  return has_steps;
}

err_t recjpq_search_pqtopk(const struct columns *columns, struct search_batch *batch)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  size_t n_slots = batch->n_items > 0 ? batch->n_slots : 0;
  struct recjpq_search *searches;
  struct share_steps steps;

  TRY(region_array(batch->scratch, batch->n, sizeof *searches, &searches));
  for (size_t q = 0; n_slots > 0 && q < batch->n; q++)
    TRY(recjpq_search_init(c, batch, q, &recjpq_rule_usual, &searches[q]));
  while (n_slots > 0 && claim_blocks(batch, searches, n_slots, &steps)) {
    /* All queries scan a block in turn: its codes stay in cache. */
    for (size_t i = steps.first; i < steps.end; i++) {
      for (size_t q = 0; q < batch->n; q++)
        recjpq_scan_block(&searches[q], i * RECJPQ_BLOCK_ITEMS, n_slots);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    if (n_slots > 0)
      recjpq_scan_end(&searches[q]);
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
