/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of hits, and what it means for receipts, explanations and counts. */
#include "daemon/merge/merge_join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crowding.h"
#include "engine/mmr.h"

/* A part's hits on their way into the answer. */
struct lane {
  const struct hit *next, *end;
};

/* Does hit `a` come before hit `b`? */
static bool is_before(const struct hit *a, const struct hit *b)
{
  return query_compare_hits(a, b) < 0;
}

/* Return the lane with the best next hit; NULL: all are empty. */
static struct lane *find_best(struct lane *lanes, size_t n)
{
  struct lane *best = NULL;

  for (size_t i = 0; i < n; i++) {
    if (lanes[i].next < lanes[i].end && (!best || is_before(lanes[i].next, best->next)))
      best = &lanes[i];
  }
  return best;
}

/* Return how many hits are joined: with mmr the candidates. */
static size_t wanted(const struct partial *head)
{
  return head->candidates ? head->candidates : head->k;
}

static size_t count_hits(const struct merge_part *const *parts, size_t n)
{
  size_t n_hits = 0;

  for (size_t i = 0; i < n; i++)
    n_hits += parts[i]->answer.n_hits;
  return n_hits;
}

/* Take the k best of all hits. */
static err_t join_best(const struct merge_part *const *parts, size_t n, struct region *r, struct answer *out)
{
  size_t n_all = count_hits(parts, n), k = wanted(&parts[0]->head);
  struct lane *lanes;

  TRY(region_array(r, n, sizeof *lanes, &lanes));
  for (size_t i = 0; i < n; i++)
    lanes[i] = (struct lane){ parts[i]->answer.hits, parts[i]->answer.hits + parts[i]->answer.n_hits };
  out->n_hits = n_all < k ? n_all : k;
  TRY(region_array(r, out->n_hits, sizeof *out->hits, &out->hits));
  for (size_t i = 0; i < out->n_hits; i++)
    out->hits[i] = *find_best(lanes, n)->next++;
  return ERR_OK;
}

/* Take the k best that are not crowded out by hits of other shards. Each part has the best that are possible in its
 * shard. What another shard crowds out makes room for something as good or better. So nothing is missing among k hits.
 */
static err_t join_uncrowded(const struct merge_part *const *parts, size_t n, struct region *r, struct answer *out)
{
  const struct partial *head = &parts[0]->head;
  size_t n_all = count_hits(parts, n), at = 0;
  struct crowding crowding;
  struct hit *all;

  TRY(region_array(r, n_all, sizeof *all, &all));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < parts[i]->answer.n_hits; j++)
      all[at++] = parts[i]->answer.hits[j];
  if (n_all > 0)
    qsort(all, n_all, sizeof *all, query_compare_hits);
  TRY(crowding_find(all, n_all, head->max_per, r, &crowding));
  out->hits = all;
  for (size_t i = 0; i < n_all && out->n_hits < wanted(head); i++) {
    if (!crowding.is_out[i])
      out->hits[out->n_hits++] = all[i];
  }
  return ERR_OK;
}

static err_t join_hits(const struct merge_part *const *parts, size_t n, struct region *r, struct answer *out)
{
  return (parts[0]->head.max_per ? join_uncrowded : join_best)(parts, n, r, out);
}

/* Return the score that an item needs to be among the hits; -inf: any is enough. */
static float threshold_of(const struct answer *out, size_t k)
{
  return out->n_hits == k && k > 0 ? out->hits[k - 1].score : -INFINITY;
}

/* Is the part exact in the joined answer? A bound that the K-th hit exceeds proves it of an approximate part, as it
 * would in one daemon. Of one that is equal, items may be missing that come before the K-th hit by their key. */
static bool is_exact(const struct receipt *part, float threshold)
{
  return part->is_exact || (part->has_bound && part->bound < threshold);
}

static void join_receipt(const struct merge_part *const *parts, size_t n, struct answer *out)
{
  size_t k = wanted(&parts[0]->head);
  float threshold = threshold_of(out, k);
  bool is_whole = n == parts[0]->head.n_shards;
  struct receipt joined = {
    .is_exact = is_whole,
    .has_bound = !is_whole || (out->n_hits == k && count_hits(parts, n) > out->n_hits),
    .bound = is_whole ? threshold : INFINITY,
  };

  for (size_t i = 0; i < n; i++) {
    const struct receipt *part = &parts[i]->answer.receipt;
    joined.is_exact &= is_exact(part, threshold);
    joined.has_bound |= part->has_bound;
    if (part->has_bound)
      joined.bound = fmaxf(joined.bound, part->bound);
  }
  out->receipt = joined;
  if (!joined.has_bound)
    out->receipt.bound = 0.0f;
}

static int compare_positions(const void *a, const void *b)
{
  const struct position *x = a, *y = b;

  return (x->partition > y->partition) - (x->partition < y->partition);
}

/* Each partition is read by one shard, so the union has each once. */
static err_t join_watermark(const struct merge_part *const *parts, size_t n, struct region *r, struct answer *out)
{
  struct position *joined;
  size_t n_all = 0;

  for (size_t i = 0; i < n; i++)
    n_all += parts[i]->answer.n_watermark;
  TRY(region_array(r, n_all, sizeof *joined, &joined));
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < parts[i]->answer.n_watermark; j++)
      joined[out->n_watermark++] = parts[i]->answer.watermark[j];
  }
  qsort(joined, n_all, sizeof *joined, compare_positions);
  out->watermark = joined;
  return ERR_OK;
}

static void join_counts(const struct merge_part *const *parts, size_t n, struct answer *out)
{
  out->counts.has_admitted = true;
  for (size_t i = 0; i < n; i++) {
    const struct counts *part = &parts[i]->answer.counts;
    out->counts.items += part->items;
    out->counts.scored += part->scored;
    out->counts.candidates += part->candidates;
    out->counts.has_admitted &= part->has_admitted;
    out->counts.admitted += part->admitted;
  }
}

static uint32_t larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* The oldest state says which items may be expired or embargoed. */
static void join_times(const struct merge_part *const *parts, size_t n, struct answer *out)
{
  out->has_time = true;
  out->time_unix_ms = INT64_MAX;
  for (size_t i = 0; i < n; i++) {
    const struct answer *part = &parts[i]->answer;
    out->queued_us = larger(out->queued_us, part->queued_us);
    out->searched_us = larger(out->searched_us, part->searched_us);
    out->has_time &= part->has_time;
    out->time_unix_ms = part->time_unix_ms < out->time_unix_ms ? part->time_unix_ms : out->time_unix_ms;
  }
}

/* ---- Explanations ---- */

/* Return the explanation of the shard that has the item. If none of the parts has it, a missing shard may. */
static struct explanation find_explanation(const struct merge_part *const *parts, size_t n, size_t at)
{
  for (size_t i = 0; i < n; i++) {
    if (at < parts[i]->answer.n_explanations && parts[i]->answer.explanations[at].verdict != VERDICT_NO_ITEM)
      return parts[i]->answer.explanations[at];
  }
  bool is_whole = n == parts[0]->head.n_shards;
  return (struct explanation){
    .key = parts[0]->answer.explanations[at].key,
    .verdict = is_whole ? VERDICT_NO_ITEM : VERDICT_UNKNOWN,
  };
}

/* Say why an admitted item that would come before the last hit is none. In its shard it was a hit, or had been crowded
 * out there already: unless the shard's search has missed it. */
static enum verdict verdict_of(const struct partial *head, const struct explanation *item)
{
  return head->max_per && item->verdict != VERDICT_MISSED ? VERDICT_CROWDED_OUT : VERDICT_MISSED;
}

/* Does the verdict depend on the hits of other shards? */
static bool depends_on_hits(enum verdict verdict)
{
  return verdict >= VERDICT_HIT && verdict != VERDICT_TOO_LOW;
}

/* Compare an item that its shard admits with the joined hits. */
static void rank(const struct answer *out, const struct partial *head, struct explanation *item)
{
  const struct hit *last = out->n_hits ? &out->hits[out->n_hits - 1] : NULL;
  const struct hit own = { .key = item->key, .score = item->score };

  item->rank = 0;
  for (size_t i = 0; i < out->n_hits && item->rank == 0; i++)
    item->rank = span_equal(out->hits[i].key, item->key) ? (uint32_t)i + 1 : 0;
  if (item->rank > 0) {
    item->verdict = VERDICT_HIT;
  } else if (!last || out->n_hits < wanted(head) || is_before(&own, last)) {
    item->verdict = verdict_of(head, item);
  } else {
    item->verdict = VERDICT_OUTRANKED;
    item->below_last_hit = last->score - item->score;
  }
}

static err_t join_explanations(const struct merge_part *const *parts, size_t n, struct region *r, struct answer *out)
{
  out->n_explanations = parts[0]->answer.n_explanations;
  TRY(region_array(r, out->n_explanations, sizeof *out->explanations, &out->explanations));
  for (size_t i = 0; i < out->n_explanations; i++) {
    out->explanations[i] = find_explanation(parts, n, i);
    if (depends_on_hits(out->explanations[i].verdict))
      rank(out, &parts[0]->head, &out->explanations[i]);
  }
  return ERR_OK;
}

err_t merge_join(const struct kernels *kernels, const struct merge_part *const *parts, size_t n, struct region *r,
                 struct answer *out)
{
  const struct answer *first = &parts[0]->answer;

  *out = (struct answer){
    .id = first->id,
    .space = first->space,
    .generation = first->generation,
    .method = first->method,
    .is_boosted = first->is_boosted,
    .now_unix_ms = first->now_unix_ms,
    .is_merged = true,
    .n_parts = (uint32_t)n,
    .n_shards = parts[0]->head.n_shards,
  };
  memcpy(out->model, first->model, sizeof out->model);
  TRY(join_hits(parts, n, r, out));
  TRY(join_explanations(parts, n, r, out));
  TRY(join_watermark(parts, n, r, out));
  join_receipt(parts, n, out);
  join_counts(parts, n, out);
  join_times(parts, n, out);
  const struct partial *head = &parts[0]->head;
  return head->candidates ? mmr_choose(kernels, head->diversity, head->k, r, out) : ERR_OK;
}
