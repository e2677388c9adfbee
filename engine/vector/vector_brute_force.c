/* SPDX-License-Identifier: Apache-2.0 */
/* Method `brute_force` over vectors: score every item. */
#include "engine/receipt.h"
#include "engine/vector/vector_columns.h"
#include "engine/vector/vector_methods.h"

enum { ROWS = 32 }; /* rows that stay in cache for all queries of a batch */

err_t vector_search_brute_force(const struct columns *columns, struct search_batch *batch)
{
  const struct vector_columns *c = vector_columns_of(columns);
  const struct vector_query *queries = vector_queries_of(batch->prepared);

  for (size_t first = 0; first < batch->n_slots; first += ROWS) {
    size_t end = first + ROWS < batch->n_slots ? first + ROWS : batch->n_slots;
    for (size_t q = 0; q < batch->n; q++) {
      struct search_result *result = &batch->results[q];
      for (size_t slot = first; slot < end; slot++) {
        if (!result->admit.has_part[slot])
          continue;
        float score = (float)vector_dot(c, batch->kernels, queries[q].q, c->model->row_dim, slot);
        if (score >= topk_threshold(&result->topk) && admit_slot(&result->admit, (uint32_t)slot))
          topk_push(&result->topk, score, (uint32_t)slot);
      }
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->n_items;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
