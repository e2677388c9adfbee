/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact` over vectors: bounds from the sketches select the items to score.
 *
 * While the sketches are scanned, the K best lower bounds are kept. At least K items score the K-th best lower bound or
 * more. So that bound is a threshold: an item with an upper bound below it is not among the K best. An item with an
 * upper bound that reaches it is a candidate. When the scan is over, candidates are scored from the best upper bound
 * down, until the next upper bound is below the K-th best score. So hardly more rows are read than any method with
 * these bounds has to read. If there are more candidates than can be kept, as with items that are all alike, some are
 * scored during the scan. An upper bound equal to the threshold does not exclude an item, because ties are broken by
 * key.
 */
#include <math.h>
#include <string.h>

#include "engine/kth_best.h"
#include "engine/receipt.h"
#include "engine/share.h"
#include "engine/vector/vector_columns.h"
#include "engine/vector/vector_methods.h"

enum {
  CANDIDATES_MIN = 1024,
  CANDIDATES_MORE = 16,
  ROWS_AHEAD = 4,   /* rows that are prefetched before they are scored */
  CLAIM_CHUNKS = 8, /* chunks, times queries, that take some 50 us: a claim has about as many */
};

struct exact_query {
  const struct vector_query *query;
  struct search_result *result;
  struct kth_best lower;         /* of the lower bounds */
  struct topk_entry *candidates; /* [capacity]: slots with their upper bounds */
  struct topk_entry *spare;      /* [capacity] */
  size_t n_candidates;
  size_t capacity;
};

struct exact_scan {
  const struct vector_columns *columns;
  const struct kernels *kernels;
};

/* An item that scores below this is not among the K best. */
static float threshold_of(const struct exact_query *q)
{
  float known = share_threshold(q->result);

  return q->lower.threshold > known ? q->lower.threshold : known;
}

/* An integer that falls as the score rises. */
static uint32_t rank_of(float score)
{
  uint32_t bits;

  score += 0.0f; /* -0 becomes 0 */
  memcpy(&bits, &score, sizeof bits);
  return bits >> 31 ? bits : ~bits & INT32_MAX;
}

/* One pass of a radix sort, by eight bits of the rank. It keeps the order of equal ones. */
static void sort_by_bits(const struct topk_entry *from, size_t n, int shift, struct topk_entry *to)
{
  size_t ends[256] = { 0 }, at = 0;

  for (size_t i = 0; i < n; i++)
    ends[rank_of(from[i].score) >> shift & 255]++;
  for (size_t digit = 0; digit < 256; digit++) {
    size_t count = ends[digit];
    ends[digit] = at;
    at += count;
  }
  for (size_t i = 0; i < n; i++)
    to[ends[rank_of(from[i].score) >> shift & 255]++] = from[i];
}

/* Sort by upper bound, best first. */
static void sort_candidates(struct exact_query *q)
{
  for (int shift = 0; shift < 32; shift += 16) {
    sort_by_bits(q->candidates, q->n_candidates, shift, q->spare);
    sort_by_bits(q->spare, q->n_candidates, shift + 8, q->candidates);
  }
}

static void drop_hopeless(struct exact_query *q)
{
  float threshold = threshold_of(q);
  size_t n = 0;

  for (size_t i = 0; i < q->n_candidates; i++) {
    if (q->candidates[i].score >= threshold)
      q->candidates[n++] = q->candidates[i];
  }
  q->n_candidates = n;
}

static void score_item(const struct exact_scan *scan, struct exact_query *q, uint32_t slot)
{
  size_t n = scan->columns->model->row_dim;
  float score = (float)vector_dot(scan->columns, scan->kernels, q->query->q, n, slot);

  q->result->counts.scored++;
  if (score >= share_threshold(q->result))
    topk_push(&q->result->topk, score, slot);
}

/* Score the candidates, best upper bound first, while they may enter the top K. No candidate remains. */
static void score_candidates(const struct exact_scan *scan, struct exact_query *q)
{
  kth_best_cut(&q->lower);
  drop_hopeless(q);
  sort_candidates(q);
  for (size_t i = 0; i < q->n_candidates && q->candidates[i].score >= threshold_of(q); i++) {
    if (i + ROWS_AHEAD < q->n_candidates)
      vector_prefetch(scan->columns, scan->columns->model->row_dim, q->candidates[i + ROWS_AHEAD].slot);
    score_item(scan, q, q->candidates[i].slot);
  }
  q->n_candidates = 0;
}

/* Add a lower bound. The K-th best is found as soon as there are K, and not much later than it changes, because a
 * threshold that lags lets more candidates pass. */
static void add_lower(struct kth_best *lower, float bound)
{
  size_t n_more = lower->threshold == -INFINITY ? 0 : lower->k / 4 + 8;

  kth_best_add(lower, bound);
  if (lower->n >= lower->k + n_more)
    kth_best_cut(lower);
}

static void add_candidate(const struct exact_scan *scan, struct exact_query *q, float bound, uint32_t slot)
{
  float lower = sketch_lower_bound(&scan->columns->sketch, &q->query->sketch, slot, bound);

  if (q->n_candidates == q->capacity) {
    drop_hopeless(q);
    if (q->n_candidates > q->capacity / 2) /* otherwise the list would soon be full again */
      score_candidates(scan, q);
  }
  q->candidates[q->n_candidates++] = (struct topk_entry){ bound, slot };
  add_lower(&q->lower, lower);
}

/* Add the items of a chunk that may enter the top K to the candidates. */
static void take_chunk(const struct exact_scan *scan, struct exact_query *q, const struct vector_chunk *chunk,
                       const float *bounds)
{
  uint32_t passed[VECTOR_CHUNK_ITEMS];
  size_t n_passed = scan->kernels->filter_ge(bounds, chunk->n, threshold_of(q), passed);

  for (size_t i = 0; i < n_passed; i++) {
    uint32_t slot = (uint32_t)chunk->first + passed[i];
    if (bounds[passed[i]] >= threshold_of(q) && admit_slot(&q->result->admit, slot))
      add_candidate(scan, q, bounds[passed[i]], slot);
  }
}

static void scan_chunk(const struct exact_scan *scan, struct exact_query *q, const struct vector_chunk *chunk)
{
  float bounds[VECTOR_CHUNK_ITEMS];

  sketch_bounds(&scan->columns->sketch, &q->query->sketch, scan->kernels, chunk->first / SKETCH_BLOCK_ITEMS,
                chunk->n_blocks, bounds);
  take_chunk(scan, q, chunk, bounds);
}

static void scan_chunk_for_two(const struct exact_scan *scan, struct exact_query *q, const struct vector_chunk *chunk)
{
  float bounds[2][VECTOR_CHUNK_ITEMS];

  sketch_bounds_pair(&scan->columns->sketch,
                     (const struct sketch_query *const[2]){ &q[0].query->sketch, &q[1].query->sketch }, scan->kernels,
                     chunk->first / SKETCH_BLOCK_ITEMS, chunk->n_blocks, (float *const[2]){ bounds[0], bounds[1] });
  for (int i = 0; i < 2; i++)
    take_chunk(scan, &q[i], chunk, bounds[i]);
}

static err_t init_query(const struct vector_query *query, struct search_result *result, size_t n_slots,
                        struct region *scratch, struct exact_query *out)
{
  size_t k = result->topk.k < n_slots ? result->topk.k : n_slots + 1; /* a larger heap would never be full either */

  *out = (struct exact_query){ .query = query, .result = result };
  out->capacity = CANDIDATES_MIN + 4 * k + CANDIDATES_MORE * (k < 256 ? k : 256);
  TRY(kth_best_init(k, scratch, &out->lower));
  TRY(region_array(scratch, out->capacity, sizeof *out->spare, &out->spare));
  return region_array(scratch, out->capacity, sizeof *out->candidates, &out->candidates);
}

/* Scan a chunk for all queries, two at a time. */
static void search_chunk(const struct exact_scan *scan, struct exact_query *queries, size_t n,
                         const struct vector_chunk *chunk)
{
  size_t q = 0;

  for (; q + 2 <= n; q += 2)
    scan_chunk_for_two(scan, &queries[q], chunk);
  if (q < n)
    scan_chunk(scan, &queries[q], chunk);
}

/* Claim chunks after telling other members what this one knows. */
static bool claim_chunks(struct search_batch *batch, struct exact_query *queries, const struct vector_chunks *chunks,
                         size_t n_each, struct share_steps *steps)
{
  for (size_t q = 0; q < batch->n; q++)
    queries[q].result->floor = threshold_of(&queries[q]);
  return share_claim(batch, 0, chunks->n, n_each, steps);
}

err_t vector_search_exact(const struct columns *columns, struct search_batch *batch)
{
  const struct vector_columns *c = vector_columns_of(columns);
  const struct vector_query *queries = vector_queries_of(batch->prepared);
  struct vector_chunks chunks = vector_chunks_of(c, batch->n_slots);
  size_t n_each = batch->n < CLAIM_CHUNKS ? CLAIM_CHUNKS / batch->n : 1;
  struct exact_scan scan = { .columns = c, .kernels = batch->kernels };
  struct exact_query *state;
  struct share_steps steps;

  TRY(region_array(batch->scratch, batch->n, sizeof *state, &state));
  for (size_t q = 0; q < batch->n; q++)
    TRY(init_query(&queries[q], &batch->results[q], batch->n_slots, batch->scratch, &state[q]));
  while (claim_chunks(batch, state, &chunks, n_each, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++) {
      struct vector_chunk chunk = vector_chunk_at(&chunks, i);
      search_chunk(&scan, state, batch->n, &chunk);
    }
  }
  for (size_t q = 0; q < batch->n; q++) {
    score_candidates(&scan, &state[q]);
    batch->results[q].counts.candidates = batch->results[q].counts.scored;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
