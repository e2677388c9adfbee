/* SPDX-License-Identifier: Apache-2.0 */
/* Method `default`: the baseline that the RecJPQPrune paper calls Transformer Default. Each item's embedding is
 * reconstructed from the embeddings of its sub-items (Equation 3) and multiplied with the query (Equation 2). Products
 * are added within each split first, then over the splits, so the scores are the same as in the other methods. */
#include "engine/recjpq/recjpq_columns.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"

enum { CLAIM_BLOCKS = 32 }; /* they take some 50 us or more: a claim has this many */

/* Reconstruct the embeddings of DOT_BLOCK_ITEMS items in one split. out [d / M][DOT_BLOCK_ITEMS]. */
static void reconstruct(const struct recjpq_model *m, size_t split, const uint8_t *codes, float *out)
{
  const float *centroids = m->centroids + split * m->split_dim * PQ_SUBITEMS;

  for (size_t k = 0; k < m->split_dim; k++) {
    for (size_t i = 0; i < DOT_BLOCK_ITEMS; i++)
      out[k * DOT_BLOCK_ITEMS + i] = centroids[k * PQ_SUBITEMS + codes[i]];
  }
}

static void offer(struct search_result *result, const float *scores, size_t first, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t slot = (uint32_t)(first + i);
    if (scores[i] >= share_threshold(result) && admit_slot(&result->admit, slot))
      topk_push(&result->topk, scores[i], slot);
  }
}

/* Score a block of items for all queries.
 *
 * codes       the codes of the block, [M][RECJPQ_BLOCK_ITEMS]
 * embeddings  scratch memory
 * scores      [batch->n][DOT_BLOCK_ITEMS]
 */
static void score_block(const struct recjpq_model *m, struct search_batch *batch, const uint8_t *codes,
                        float *embeddings, float *scores)
{
  const struct recjpq_query *queries = recjpq_queries_of(batch->prepared);
  float products[DOT_BLOCK_ITEMS];

  for (size_t split = 0; split < m->n_splits; split++) {
    reconstruct(m, split, codes + split * RECJPQ_BLOCK_ITEMS, embeddings);
    for (size_t q = 0; q < batch->n; q++) {
      float *sums = scores + q * DOT_BLOCK_ITEMS;
      batch->kernels->dot_blocks(queries[q].vector + split * m->split_dim, m->split_dim, embeddings, 1, products);
      for (size_t i = 0; i < DOT_BLOCK_ITEMS; i++)
        sums[i] = split == 0 ? products[i] : sums[i] + products[i];
    }
  }
}

err_t recjpq_search_default(const struct columns *columns, struct search_batch *batch)
{
  const struct recjpq_columns *c = recjpq_columns_of(columns);
  size_t n_blocks = (batch->n_slots + DOT_BLOCK_ITEMS - 1) / DOT_BLOCK_ITEMS;
  struct share_steps steps;
  float *embeddings, *scores;

  TRY(region_aligned(batch->scratch, c->model->split_dim * DOT_BLOCK_ITEMS, sizeof *embeddings, &embeddings));
  TRY(region_array(batch->scratch, batch->n * DOT_BLOCK_ITEMS, sizeof *scores, &scores));
  while (share_claim(batch, 0, n_blocks, CLAIM_BLOCKS, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++) {
      size_t first = i * DOT_BLOCK_ITEMS;
      size_t block = first / RECJPQ_BLOCK_ITEMS * RECJPQ_BLOCK_ITEMS, n = batch->n_slots - first;
      score_block(c->model, batch, c->planes + block * c->model->n_splits + (first - block), embeddings, scores);
      for (size_t q = 0; q < batch->n; q++)
        offer(&batch->results[q], scores + q * DOT_BLOCK_ITEMS, first, n < DOT_BLOCK_ITEMS ? n : DOT_BLOCK_ITEMS);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->n_items;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
