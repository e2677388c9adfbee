/* SPDX-License-Identifier: Apache-2.0 */
/* Method `low_rank(r)`: the K best items by W_r, the best rank-r approximation of W, ordered by their scores under W
 * (bilinear paper, section 5).
 *
 * Rows are rotated, so a score under W_r is q'^T b over the first r numbers. The K best items by that score are found
 * in the same way as vector_exact.c finds the K best under W, with bounds from the sketches. Then they are scored under
 * W.
 *
 * The receipt needs an upper bound on the score under W of every item that is not returned. Each item has two bounds,
 * and the lower one is used:
 *   - the sketch's upper bound on its score under W;
 *   - its score under W_r, or the upper bound on that score if it was not computed, plus |q'_rest| |b|. Here q'_rest is
 *     q' from number r + 1 on. By Cauchy-Schwarz this bounds the rest. It is never more than Theorem 3's sigma_(r+1)
 *     |q| |d|, since |q'_rest| <= sigma_(r+1) |q| and |b| <= |d|.
 *
 * A second heap of K + 1 items finds the largest of these bounds over all items that are not returned. At least one
 * item in that heap is not returned, and no item outside it has a larger bound.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/search/receipt.h"
#include "engine/vector/vector_chunks.h"
#include "engine/vector/vector_methods.h"

struct low_rank {
  const double *q;
  struct vector_sketch_query sketch; /* bounds on the score under W */
  struct vector_sketch_query cut;    /* bounds on the score under W_r */
  double rest;                       /* |q'_rest|, rounded up; 0 if q' has no rest */
  double size;                       /* |q'| */
  struct topk candidates;            /* the K best under W_r */
  struct topk bounds;                /* the K + 1 largest bounds */
};

struct low_rank_scan {
  const struct vector_columns *columns;
  const struct kernels *kernels;
  size_t rank;
  float bounds[VECTOR_CHUNK_ITEMS]; /* on scores under W */
  float cut[VECTOR_CHUNK_ITEMS];    /* on scores under W_r */
};

/* |q| over n numbers, rounded up. */
static double norm_above(const double *q, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += q[k] * q[k];
  return sqrt(sum) * (1 + 0x1p-40);
}

/* Bound the score under W of an item that was scored under W_r. It is s_r + |q'_rest| |b|, plus what rounding may add:
 * 2^-24 of the score for its own rounding to f32, and less than 2^-38 |q'| |b| for the double sums. If q' has no rest,
 * the score under W has the same terms in the same order, so both scores are the same. */
static float bound_of_scored(const struct low_rank *query, double score, double norm)
{
  double rest = query->rest * norm, bound = score + rest;

  if (query->rest == 0)
    return (float)score;
  bound += 0x1p-22 * (fabs(score) + rest) + 0x1p-36 * query->size * norm;
  return nextafterf((float)bound, INFINITY);
}

/* The same for an item that was not scored, from an upper bound on s_r. It holds for the rounded s_r too. */
static float bound_of_others(const struct low_rank *query, float cut, double norm)
{
  return query->rest == 0 ? cut : bound_of_scored(query, (double)cut, norm);
}

/* Score an item under W_r and offer it to the candidates. Returns a bound on its score under W. */
static float score_item(const struct low_rank_scan *scan, struct low_rank *query, uint32_t slot, double norm,
                        struct search_result *result)
{
  double score = vector_dot(scan->columns, scan->kernels, query->q, scan->rank, slot);

  result->counts.candidates++;
  if ((float)score >= topk_threshold(&query->candidates))
    topk_push(&query->candidates, (float)score, slot);
  return bound_of_scored(query, score, norm);
}

static void visit_item(const struct low_rank_scan *scan, struct low_rank *query, size_t first, size_t i,
                       struct search_result *result)
{
  uint32_t slot = (uint32_t)(first + i);
  double norm = (double)scan->columns->norms[slot];
  float bound;

  if (!admit_slot(&result->admit, slot))
    return;
  if (scan->cut[i] >= topk_threshold(&query->candidates))
    bound = score_item(scan, query, slot, norm, result);
  else
    bound = bound_of_others(query, scan->cut[i], norm);
  bound = fminf(bound, scan->bounds[i]);
  if (bound >= topk_threshold(&query->bounds))
    topk_push(&query->bounds, bound, slot);
}

/* Visit the items of a chunk that may enter the candidates or the bounds: merge two rising lists of them. */
static void visit_chunk(const struct low_rank_scan *scan, struct low_rank *query, const struct vector_chunk *chunk,
                        struct search_result *result)
{
  uint32_t a[VECTOR_CHUNK_ITEMS + 1], b[VECTOR_CHUNK_ITEMS + 1];
  size_t n_a = scan->kernels->filter_ge(scan->cut, chunk->n, topk_threshold(&query->candidates), a), i = 0;
  size_t n_b = scan->kernels->filter_ge(scan->bounds, chunk->n, topk_threshold(&query->bounds), b), j = 0;

  a[n_a] = b[n_b] = UINT32_MAX;
  while (i < n_a || j < n_b) {
    uint32_t next = a[i] < b[j] ? a[i] : b[j];
    i += a[i] == next;
    j += b[j] == next;
    visit_item(scan, query, chunk->first, next, result);
  }
}

static void scan_chunk(struct low_rank_scan *scan, struct low_rank *query, const struct vector_chunk *chunk,
                       struct search_result *result)
{
  struct vector_sketch_set set = vector_sketch_set_of(&scan->columns->sketch, chunk->first, chunk->n);

  vector_sketch_bounds(&set, &query->sketch, scan->kernels, scan->bounds);
  vector_sketch_bounds(&set, &query->cut, scan->kernels, scan->cut);
  visit_chunk(scan, query, chunk, result);
}

static int by_slot(const void *a, const void *b)
{
  const struct topk_entry *x = a, *y = b;

  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Return the largest bound of an item that is not a candidate, or -inf if there is none. Sorts the candidates. */
static float bound_of_rest(struct low_rank *query)
{
  float bound = -INFINITY;

  qsort(query->candidates.heap, query->candidates.n, sizeof *query->candidates.heap, by_slot);
  for (size_t i = 0; i < query->bounds.n; i++) {
    const struct topk_entry *entry = &query->bounds.heap[i];
    if (entry->score > bound &&
        !bsearch(entry, query->candidates.heap, query->candidates.n, sizeof *query->candidates.heap, by_slot))
      bound = entry->score;
  }
  return bound;
}

static void finish(const struct low_rank_scan *scan, struct low_rank *query, uint64_t n_items,
                   struct search_result *result)
{
  float bound = bound_of_rest(query);

  for (size_t i = 0; i < query->candidates.n; i++) {
    uint32_t slot = query->candidates.heap[i].slot;
    topk_push(&result->topk,
              (float)vector_dot(scan->columns, scan->kernels, query->q, scan->columns->model->row_dim, slot), slot);
  }
  result->counts.scored = query->candidates.n;
  receipt_bounded(result, n_items, result->admit.n_admitted - query->candidates.n, bound);
}

static err_t init_heap(const struct topk *like, size_t k, struct region *scratch, struct topk *out)
{
  struct topk_entry *heap;

  TRY(region_array(scratch, k, sizeof *heap, &heap));
  topk_init(out, heap, k, like->order, like->context);
  return ERR_OK;
}

static err_t init_query(const struct vector_model *m, const struct vector_query *query, size_t rank, size_t n_slots,
                        const struct search_result *result, struct region *scratch, struct low_rank *out)
{
  size_t k = result->topk.k < n_slots ? result->topk.k : n_slots;

  *out = (struct low_rank){ .q = query->q, .sketch = query->sketch };
  out->rest = norm_above(query->q + rank, m->row_dim - rank);
  out->size = norm_above(query->q, m->row_dim);
  TRY(vector_query_sketch(m, query->q, rank, scratch, &out->cut));
  TRY(init_heap(&result->topk, k ? k : 1, scratch, &out->candidates));
  return init_heap(&result->topk, k + 1, scratch, &out->bounds);
}

err_t vector_search_low_rank(const struct columns *columns, struct search_batch *batch)
{
  const struct vector_columns *c = vector_columns_of(columns);
  const struct vector_query *queries = vector_queries_of(batch->prepared);
  struct vector_chunks chunks = vector_chunks_of(c, batch->n_slots);
  struct low_rank_scan *scan;
  struct low_rank *state;

  TRY(region_array(batch->scratch, 1, sizeof *scan, &scan));
  TRY(region_array(batch->scratch, batch->n, sizeof *state, &state));
  scan->columns = c;
  scan->kernels = batch->kernels;
  scan->rank = batch->method->args[0] < c->model->row_dim ? batch->method->args[0] : c->model->row_dim;
  for (size_t q = 0; q < batch->n; q++)
    TRY(init_query(c->model, &queries[q], scan->rank, batch->n_slots, &batch->results[q], batch->scratch, &state[q]));
  for (size_t i = 0; i < chunks.order.n; i++) {
    struct vector_chunk chunk = vector_chunk_at(&chunks, i);
    for (size_t q = 0; q < batch->n; q++)
      scan_chunk(scan, &state[q], &chunk, &batch->results[q]);
  }
  for (size_t q = 0; q < batch->n; q++)
    finish(scan, &state[q], batch->n_items, &batch->results[q]);
  return ERR_OK;
}
