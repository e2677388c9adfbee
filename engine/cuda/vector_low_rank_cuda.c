/* SPDX-License-Identifier: Apache-2.0 */
/* low_rank(r) on the device: the K best by W_r, the best rank-r approximation of W, in the order of their scores under
 * W (bilinear paper, section 5).
 *
 * An exact search with the first r numbers finds the K best by W_r, by the same scores as on the processor. Then those
 * K are scored under W.
 *
 * The receipt needs a bound on the scores under W of the items that are not returned. The processor uses Theorem 3's
 * bound, with residual norms in place of its sigma_(r+1) |q| |d|. Here a second, exact search under W costs no more
 * than computing the residual norms of all items, and gives the tightest bound possible. If the returned items are the
 * K best under W, that is the K-th of their scores; otherwise it is the best score of an item that is not returned.
 *
 * Queries that admit few items get the K best under W: all of these items are scored under W anyway.
 */
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "engine/cuda/vector_cuda.h"
#include "engine/search/receipt.h"
#include "engine/vector/vector_methods.h"
#include "kernels/cuda/vector_score.h"

/* Copy a batch, with results of its own. */
static err_t like_batch(const struct search_batch *batch, struct search_batch *out)
{
  *out = *batch;
  TRY(region_array(batch->scratch, batch->n, sizeof *out->results, &out->results));
  for (size_t q = 0; q < batch->n; q++) {
    const struct topk *like = &batch->results[q].topk;
    struct topk_entry *heap;
    out->results[q] = (struct search_result){ .admit = batch->results[q].admit, .min_score = -INFINITY };
    TRY(region_array(batch->scratch, like->k, sizeof *heap, &heap));
    topk_init(&out->results[q].topk, heap, like->k, like->order, like->context);
  }
  return ERR_OK;
}

/* Score the kept items of n queries from `first` on under W, and push them to the batch's results. k_max: the largest
 * number of kept items of any query. */
static err_t score_kept(const struct device_columns *c, struct search_batch *batch, const struct search_batch *kept,
                        size_t first, size_t n, size_t k_max)
{
  const struct vector_query *queries = vector_queries_of(batch->prepared);
  size_t row_dim = vector_cuda_model(c)->row_dim;
  struct device_worker *w = batch->worker;
  struct device_lists lists = { .n_lists = n, .capacity = k_max };
  uint32_t *lengths, *slots;
  float *scores;
  double *q;

  device_worker_reset(w);
  TRY(device_worker_input(w, n, sizeof *lengths, &lengths, &lists.n));
  TRY(device_worker_input(w, n * k_max, sizeof *slots, &slots, &lists.slots));
  TRY(device_worker_output(w, n * k_max, sizeof *scores, &lists.scores, &scores));
  for (size_t i = 0; i < n; i++) {
    const struct topk *topk = &kept->results[first + i].topk;
    lengths[i] = (uint32_t)topk->n;
    for (size_t j = 0; j < topk->n; j++)
      slots[i * k_max + j] = topk->heap[j].slot;
  }
  TRY(vector_cuda_send_queries(c, w, queries + first, n, row_dim, &q));
  TRY(vector_score(w->stream, &c->rows, q, row_dim, &lists));
  TRY(device_worker_receive(w));
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < lengths[i]; j++)
      topk_push(&batch->results[first + i].topk, scores[i * k_max + j], slots[i * k_max + j]);
  }
  return ERR_OK;
}

/* Score the kept items of all queries, as many queries at a time as fit in the worker's memory. */
static err_t score_all_kept(const struct device_columns *c, struct search_batch *batch, const struct search_batch *kept)
{
  enum { SMALL = 64 * 1024, MORE = 256 }; /* slack for alignment: once per search, and for each query */
  size_t k_max = 1;

  for (size_t q = 0; q < batch->n; q++)
    k_max = kept->results[q].topk.n > k_max ? kept->results[q].topk.n : k_max;
  struct vector_cuda_bytes query = vector_cuda_query_bytes(c, vector_cuda_model(c)->row_dim);
  /* A worker has more scratch than room for inputs. */
  size_t bytes = size_max(query.input, query.scratch) + k_max * 8 + MORE;
  size_t n_together = (DEVICE_MIRROR_BYTES - SMALL) / bytes;
  n_together = n_together < 1 ? 1 : n_together;
  for (size_t q = 0; q < batch->n; q += n_together)
    TRY(score_kept(c, batch, kept, q, batch->n - q < n_together ? batch->n - q : n_together, k_max));
  return ERR_OK;
}

static int by_slot(const void *a, const void *b)
{
  const struct topk_entry *x = a, *y = b;

  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Does an item that was not returned belong among the returned ones? */
static bool is_missed(const struct topk *returned, const struct topk_entry *entry)
{
  float threshold = topk_threshold(returned);

  return entry->score > threshold || (entry->score == threshold && returned->n > 0 &&
                                      returned->order(returned->context, entry->slot, returned->heap[0].slot) < 0);
}

/* Return a bound on the scores of the items that were not returned; -inf if the best items were all kept. The bound is
 * the largest of their scores. If an item ties with the last hit and only its key puts it before, the bound is the next
 * float, because then the answer is not exact. Sorts the kept items by slot. */
static float bound_of_rest(const struct topk *returned, struct topk *kept, const struct topk *best)
{
  float bound = -INFINITY;

  qsort(kept->heap, kept->n, sizeof *kept->heap, by_slot);
  for (size_t i = 0; i < best->n; i++) {
    const struct topk_entry *entry = &best->heap[i];
    if (entry->score < bound || bsearch(entry, kept->heap, kept->n, sizeof *kept->heap, by_slot))
      continue;
    float score = entry->score == topk_threshold(returned) && is_missed(returned, entry)
                      ? nextafterf(entry->score, INFINITY)
                      : entry->score;
    bound = score > bound ? score : bound;
  }
  return bound;
}

err_t vector_cuda_search_low_rank(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);
  size_t row_dim = vector_cuda_model(c)->row_dim;
  size_t rank = batch->method->args[0] < row_dim ? batch->method->args[0] : row_dim;
  struct search_batch kept, best;

  if (batch->admits_few)
    return vector_cuda_search(c, batch, row_dim);
  TRY(like_batch(batch, &kept));
  TRY(vector_cuda_search(c, &kept, rank));
  TRY(like_batch(batch, &best));
  TRY(vector_cuda_search(c, &best, row_dim));
  TRY(score_all_kept(c, batch, &kept));
  for (size_t q = 0; q < batch->n; q++) {
    struct search_result *result = &batch->results[q];
    float bound = bound_of_rest(&result->topk, &kept.results[q].topk, &best.results[q].topk);
    uint64_t n_returned = kept.results[q].topk.n;
    result->counts.scored = n_returned;
    result->counts.candidates = kept.results[q].counts.scored;
    receipt_bounded(result, batch->n_items, result->admit.n_admitted - n_returned, bound);
  }
  return ERR_OK;
}
