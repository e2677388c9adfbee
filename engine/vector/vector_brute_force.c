/* SPDX-License-Identifier: Apache-2.0 */
/* Method `brute_force` over vectors: score every item. */
#include "engine/search/receipt.h"
#include "engine/search/share.h"
#include "engine/vector/vector_columns.h"
#include "engine/vector/vector_methods.h"

enum {
  ROWS = 32,               /* rows that stay in cache for all queries of a batch: a step */
  CLAIM_NUMBERS = 1 << 19, /* products that take some 50 us: a claim has about as many */
};

static void search_rows(const struct vector_columns *c, struct search_batch *batch, size_t first, size_t end)
{
  const struct vector_query *queries = vector_queries_of(batch->prepared);

  for (size_t q = 0; q < batch->n; q++) {
    struct search_result *result = &batch->results[q];
    for (size_t slot = first; slot < end; slot++) {
      if (!bits_get(result->admit.words, slot))
        continue;
      float score = (float)vector_dot(c, batch->kernels, queries[q].q, c->model->row_dim, slot);
      if (score >= share_threshold(result) && admit_slot(&result->admit, (uint32_t)slot))
        topk_push(&result->topk, score, (uint32_t)slot);
    }
  }
}

err_t vector_search_brute_force(const struct columns *columns, struct search_batch *batch)
{
  const struct vector_columns *c = vector_columns_of(columns);
  size_t n_each = CLAIM_NUMBERS / (c->model->row_dim * batch->n * ROWS) + 1;
  struct share_steps steps;

  while (share_claim(batch, 0, (batch->n_slots + ROWS - 1) / ROWS, n_each, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++)
      search_rows(c, batch, i * ROWS, i * ROWS + ROWS < batch->n_slots ? i * ROWS + ROWS : batch->n_slots);
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->results[q].admit.n_admitted + batch->results[q].admit.n_excluded;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
