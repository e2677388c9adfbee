/* Exact search over vectors: bounds from the sketches tell which items are worth scoring.
 *
 * An item whose upper bound is below the K-th best score found so far (the threshold) cannot enter; every other one is
 * scored in full. The first chunk starts from a threshold of its own: K of its items have a lower bound of at least the
 * K-th best lower bound, so what is below that cannot enter either. Equality is never enough to skip: ties go by key.
 */
#include <math.h>

#include "engine/receipt.h"
#include "engine/vector_columns.h"

struct exact_scan {
  const struct vector_columns *columns;
  const struct kernels *kernels;
  struct topk_entry *heap; /* [VECTOR_CHUNK_ITEMS] */
};

static void score_item(const struct exact_scan *scan, const struct vector_query *query, uint32_t slot,
                       struct search_result *result)
{
  float score = (float)vector_dot(scan->columns, scan->kernels, query->q, scan->columns->model->row_dim, slot);

  result->counts.scored++;
  if (score >= topk_threshold(&result->topk))
    topk_push(&result->topk, score, slot);
}

/* Score the items of a chunk whose upper bound reaches both thresholds. */
static void score_chunk(const struct exact_scan *scan, const struct vector_query *query, size_t first, size_t n,
                        const float *bounds, float start, struct search_result *result)
{
  uint32_t passed[VECTOR_CHUNK_ITEMS];
  size_t n_passed = scan->kernels->filter_ge(bounds, n, fmaxf(start, topk_threshold(&result->topk)), passed);

  for (size_t i = 0; i < n_passed; i++) {
    uint32_t slot = (uint32_t)first + passed[i];
    if (i + 1 < n_passed)
      vector_prefetch(scan->columns, scan->columns->model->row_dim, first + passed[i + 1]);
    if (bounds[passed[i]] >= topk_threshold(&result->topk) && admit_slot(&result->admit, slot))
      score_item(scan, query, slot, result);
  }
}

/* The K-th best lower bound of the items admitted, -inf below K. */
static float kth_lower_bound(const struct exact_scan *scan, const struct vector_chunk *chunk, const float *scores,
                             const float *slacks, const struct search_result *result)
{
  struct topk lower;

  if (result->topk.k > chunk->n)
    return -INFINITY;
  topk_init(&lower, scan->heap, result->topk.k, result->topk.order, result->topk.context);
  for (size_t i = 0; i < chunk->n; i++) {
    float bound = scores[i] - slacks[i];
    if (bound >= topk_threshold(&lower) && admit_slot(&result->admit, (uint32_t)(chunk->first + i)))
      topk_push(&lower, bound, (uint32_t)(chunk->first + i));
  }
  return topk_threshold(&lower);
}

static void search_first(const struct exact_scan *scan, const struct vector_chunk *chunk,
                         const struct vector_query *query, struct search_result *result)
{
  float scores[VECTOR_CHUNK_ITEMS], slacks[VECTOR_CHUNK_ITEMS];

  sketch_scores(&scan->columns->sketch, &query->sketch, scan->kernels, chunk->first / SKETCH_BLOCK_ITEMS,
                chunk->n_blocks, scores, slacks);
  float start = kth_lower_bound(scan, chunk, scores, slacks, result);
  for (size_t i = 0; i < chunk->n; i++)
    scores[i] += slacks[i];
  score_chunk(scan, query, chunk->first, chunk->n, scores, start, result);
}

static void search_next(const struct exact_scan *scan, const struct vector_chunk *chunk,
                        const struct vector_query *query, struct search_result *result)
{
  float bounds[VECTOR_CHUNK_ITEMS];

  sketch_bounds(&scan->columns->sketch, &query->sketch, scan->kernels, chunk->first / SKETCH_BLOCK_ITEMS,
                chunk->n_blocks, bounds);
  score_chunk(scan, query, chunk->first, chunk->n, bounds, -INFINITY, result);
}

err_t vector_search_exact(const struct vector_columns *c, struct search_batch *batch)
{
  const struct vector_query *queries = batch->prepared;
  struct vector_chunks chunks = vector_chunks_of(c, batch->n_slots);
  struct exact_scan scan = { .columns = c, .kernels = batch->kernels };

  TRY(region_array(batch->scratch, VECTOR_CHUNK_ITEMS, sizeof *scan.heap, &scan.heap));
  for (size_t i = 0; i < chunks.n; i++) {
    struct vector_chunk chunk = vector_chunk_at(&chunks, i);
    for (size_t q = 0; q < batch->n; q++) {
      if (i == 0)
        search_first(&scan, &chunk, &queries[q], &batch->results[q]);
      else
        search_next(&scan, &chunk, &queries[q], &batch->results[q]);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    batch->results[q].counts.candidates = batch->results[q].counts.scored;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
