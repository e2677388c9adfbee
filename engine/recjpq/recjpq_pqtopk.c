/* SPDX-License-Identifier: Apache-2.0 */
/* Method `pqtopk`: every item's score is the sum of its sub-items' scores (RecJPQPrune paper, section 3.2).
 *
 * Every item is looked at, but most are only filtered: a sum of bytes bounds the score (recjpq_deficits.h) and skips
 * items that cannot reach the K-th best score found so far. Scores are computed only for the items that pass.
 */
#include "base/size.h"
#include "engine/recjpq/recjpq_begin.h"
#include "engine/recjpq/recjpq_guess.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_scan.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"

enum {
  CLAIM_BLOCKS = 32,    /* blocks, times queries, that take some 20 us: a claim has about as many, */
  CLAIM_BLOCKS_MIN = 4, /* but not fewer blocks: only within a claim the next block is prefetched */
};

/* What members claim steps of: queries to warm up, blocks to scan. */
enum { JOB_WARM_UP, JOB_SCAN };

/* Prepare the queries. A member narrows and warms up for those that it claims. It takes the floors of the others; where
 * one is not known yet, it does the same, which takes no longer than waiting. */
static err_t init_searches(const struct recjpq_columns *c, struct search_batch *batch, const struct recjpq_rule *rule,
                           struct recjpq_search *searches)
{
  struct share_steps claimed;

  for (size_t q = 0; q < batch->n; q++)
    searches[q].columns = NULL;
  while (share_claim(batch, JOB_WARM_UP, batch->n, 1, &claimed)) {
    TRY(recjpq_begin(c, batch, claimed.first, rule, &searches[claimed.first]));
    batch->results[claimed.first].floor = searches[claimed.first].floor;
  }
  for (size_t q = 0; q < batch->n; q++) {
    if (!searches[q].columns)
      TRY(recjpq_begin(c, batch, q, rule, &searches[q]));
  }
  return ERR_OK;
}

/* Claim blocks. What other members know raises this one's floors. */
static bool claim_blocks(struct search_batch *batch, struct recjpq_search *searches, size_t n_slots,
                         struct share_steps *steps)
{
  size_t n_blocks = (n_slots + RECJPQ_BLOCK_ITEMS - 1) / RECJPQ_BLOCK_ITEMS;
  size_t n_each = size_max(CLAIM_BLOCKS / batch->n, CLAIM_BLOCKS_MIN);

  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].floor = recjpq_threshold(&searches[q]);
  bool has_steps = share_claim(batch, JOB_SCAN, n_blocks, n_each, steps);
  for (size_t q = 0; q < batch->n; q++)
    searches[q].floor = batch->results[q].floor;
  return has_steps;
}

err_t recjpq_search_pqtopk_by(const struct recjpq_columns *c, struct search_batch *batch,
                              const struct recjpq_rule *rule)
{
  size_t n_slots = batch->n_items > 0 ? batch->n_slots : 0;
  struct recjpq_search *searches;
  struct share_steps steps;

  TRY(region_array(batch->scratch, batch->n, sizeof *searches, &searches));
  if (n_slots > 0)
    TRY(init_searches(c, batch, rule, searches));
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
    if (n_slots > 0 && recjpq_guess_failed(&searches[q]))
      recjpq_scan(&searches[q], n_slots);
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}

err_t recjpq_search_pqtopk(const struct columns *columns, struct search_batch *batch)
{
  return recjpq_search_pqtopk_by(recjpq_columns_of(columns), batch, &recjpq_rule_usual);
}
