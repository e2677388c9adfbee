/* PQTopK: score every item by its sub-items' scores (RecJPQPrune paper, section 3.2). */
#include "engine/receipt.h"
#include "engine/recjpq_columns.h"

enum { CHUNK_BLOCKS = 16, CHUNK_ITEMS = CHUNK_BLOCKS * PQ_BLOCK_ITEMS };

static void offer(struct search_result *result, const struct kernels *kernels, const float *scores, uint32_t first,
                  size_t n)
{
  uint32_t passed[CHUNK_ITEMS];
  size_t n_passed = kernels->filter_ge(scores, n, topk_threshold(&result->topk), passed);

  for (size_t i = 0; i < n_passed; i++) {
    float score = scores[passed[i]];
    uint32_t slot = first + passed[i];
    if (score >= topk_threshold(&result->topk) && admit_slot(&result->admit, slot))
      topk_push(&result->topk, score, slot);
  }
}

err_t recjpq_search_pqtopk(const struct recjpq_columns *c, struct search_batch *batch)
{
  const struct recjpq_query *queries = batch->prepared;
  size_t n_splits = c->model->n_splits;
  float scores[CHUNK_ITEMS];

  for (size_t first = 0; first < batch->n_slots; first += CHUNK_ITEMS) {
    size_t n = batch->n_slots - first < CHUNK_ITEMS ? batch->n_slots - first : CHUNK_ITEMS;
    size_t n_blocks = (n + PQ_BLOCK_ITEMS - 1) / PQ_BLOCK_ITEMS;
    for (size_t q = 0; q < batch->n; q++) {
      batch->kernels->pq_scan(queries[q].subitem_scores, n_splits, c->planes + first * n_splits, n_blocks, scores);
      offer(&batch->results[q], batch->kernels, scores, (uint32_t)first, n);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.scored = batch->n_items;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
