/* SPDX-License-Identifier: Apache-2.0 */
/* Taking, dropping, sorting and scoring the candidates of `exact` over vectors. */
#include "engine/vector/vector_candidates.h"

#include <math.h>
#include <string.h>

#include "engine/search/share.h"

enum {
  CANDIDATES_MIN = 1024,
  CANDIDATES_MORE = 16,
  ROWS_AHEAD = 4, /* rows that are prefetched before they are scored */
};

err_t vector_candidates_init(const struct vector_columns *columns, const struct search_batch *batch, size_t q,
                             struct vector_candidates *out)
{
  struct search_result *result = &batch->results[q];
  size_t n_slots = batch->n_slots;
  size_t k = result->topk.k < n_slots ? result->topk.k : n_slots + 1; /* a larger heap would never be full either */

  *out = (struct vector_candidates){
    .columns = columns, .kernels = batch->kernels, .query = &vector_queries_of(batch->prepared)[q], .result = result
  };
  out->capacity = CANDIDATES_MIN + 4 * k + CANDIDATES_MORE * (k < 256 ? k : 256);
  TRY(kth_best_init(k, batch->scratch, &out->lower));
  TRY(region_array(batch->scratch, out->capacity, sizeof *out->spare, &out->spare));
  return region_array(batch->scratch, out->capacity, sizeof *out->items, &out->items);
}

float vector_candidates_threshold(const struct vector_candidates *c)
{
  float known = share_threshold(c->result);

  return c->lower.threshold > known ? c->lower.threshold : known;
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
static void sort_items(struct vector_candidates *c)
{
  for (int shift = 0; shift < 32; shift += 16) {
    sort_by_bits(c->items, c->n, shift, c->spare);
    sort_by_bits(c->spare, c->n, shift + 8, c->items);
  }
}

static void drop_hopeless(struct vector_candidates *c)
{
  float threshold = vector_candidates_threshold(c);
  size_t n = 0;

  for (size_t i = 0; i < c->n; i++) {
    if (c->items[i].score >= threshold)
      c->items[n++] = c->items[i];
  }
  c->n = n;
}

static void score_item(struct vector_candidates *c, uint32_t slot)
{
  float score = (float)vector_dot(c->columns, c->kernels, c->query->q, c->columns->model->row_dim, slot);

  c->result->counts.scored++;
  if (score >= share_threshold(c->result) && admit_late(&c->result->admit, slot))
    topk_push(&c->result->topk, score, slot);
}

void vector_candidates_score(struct vector_candidates *c)
{
  kth_best_cut(&c->lower);
  drop_hopeless(c);
  sort_items(c);
  for (size_t i = 0; i < c->n && c->items[i].score >= vector_candidates_threshold(c); i++) {
    if (i + ROWS_AHEAD < c->n)
      vector_prefetch(c->columns, c->columns->model->row_dim, c->items[i + ROWS_AHEAD].slot);
    score_item(c, c->items[i].slot);
  }
  c->n = 0;
}

static void add_item(struct vector_candidates *c, float bound, uint32_t slot)
{
  float lower = vector_sketch_lower_bound(&c->columns->sketch, &c->query->sketch, slot, bound);

  if (c->n == c->capacity) {
    drop_hopeless(c);
    if (c->n > c->capacity / 2) /* otherwise the list would soon be full again */
      vector_candidates_score(c);
  }
  c->items[c->n++] = (struct topk_entry){ bound, slot };
  if (lower > c->lower.threshold && admit_late(&c->result->admit, slot))
    kth_best_add_bound(&c->lower, lower, c->lower.k / 4 + 8);
}

/* Few items that pass raise the threshold or are scored. Only these are looked up among late keys. */
void vector_candidates_take(struct vector_candidates *c, const struct vector_sketch_set *set, const float *bounds)
{
  uint32_t passed[VECTOR_CHUNK_ITEMS];
  size_t n_passed = c->kernels->filter_ge(bounds, set->n, vector_candidates_threshold(c), passed);

  for (size_t i = 0; i < n_passed; i++) {
    uint32_t slot = vector_sketch_set_slot(set, passed[i]);
    if (bounds[passed[i]] >= vector_candidates_threshold(c) && admit_but_late(&c->result->admit, slot))
      add_item(c, bounds[passed[i]], slot);
  }
}
