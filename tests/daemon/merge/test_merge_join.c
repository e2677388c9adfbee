/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of joining: random answers, split at random among shards, become the answer of the whole again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/merge/merge_join.h"
#include "engine/min_score.h"
#include "engine/mmr.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { ITEMS_MAX = 60, SHARDS_MAX = 7, ROUNDS = 5000, KEY_BYTES = 8, DIM = 3 };

static const struct kernels *kernels;
static uint64_t seed;

/* A catalogue of items whose scores often tie, in order of score and key. */
struct world {
  char keys[ITEMS_MAX][KEY_BYTES];
  struct hit items[ITEMS_MAX];
  struct attribute_value shown[ITEMS_MAX];
  float vectors[ITEMS_MAX][DIM];
  uint32_t shard_of[ITEMS_MAX];
  size_t n;
};

static int compare_hits(const void *a, const void *b)
{
  const struct hit *x = a, *y = b;

  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  return span_compare(x->key, y->key);
}

static void draw_world(struct dice *d, uint32_t n_shards, struct world *w)
{
  w->n = dice_below(d, ITEMS_MAX + 1);
  for (size_t i = 0; i < w->n; i++) {
    int n = snprintf(w->keys[i], KEY_BYTES, "%zu", i);
    w->items[i] = (struct hit){ .key = span_of(w->keys[i], (size_t)n),
                                 .score = (float)dice_below(d, 12) / 4.0f - 1.0f };
    w->shown[i] = (struct attribute_value){ span_of_str("number"), { VALUE_INTEGER, .integer = (int64_t)i } };
    if (dice_below(d, 4))
      w->items[i].attributes = &w->shown[i];
    w->items[i].n_attributes = w->items[i].attributes != NULL;
  }
  qsort(w->items, w->n, sizeof *w->items, compare_hits);
  for (size_t i = 0; i < w->n; i++)
    w->shard_of[i] = (uint32_t)dice_below(d, n_shards);
}

/* What an exact search of some shard says; of all of them with shard = UINT32_MAX. */
static void search(const struct world *w, uint32_t shard, uint32_t k, struct hit *hits, struct answer *out)
{
  size_t n_admitted = 0;

  *out = (struct answer){ .hits = hits, .receipt = { .is_exact = true }, .counts = { .has_admitted = true } };
  for (size_t i = 0; i < w->n; i++) {
    if (shard != UINT32_MAX && w->shard_of[i] != shard)
      continue;
    n_admitted++;
    if (out->n_hits < k)
      hits[out->n_hits++] = w->items[i];
  }
  out->counts.items = out->counts.admitted = n_admitted;
  if (n_admitted > out->n_hits) {
    out->receipt.has_bound = true;
    out->receipt.bound = hits[k - 1].score;
  }
}

/* A hit's attribute is that of the item with its key. */
static void assert_shown(const struct answer *a, const struct answer *b)
{
  for (size_t i = 0; i < a->n_hits; i++) {
    assert_int_equal(a->hits[i].n_attributes, b->hits[i].n_attributes);
    assert_ptr_equal(a->hits[i].attributes, b->hits[i].attributes);
  }
}

static void assert_same(const struct answer *a, const struct answer *b)
{
  assert_int_equal(a->n_hits, b->n_hits);
  for (size_t i = 0; i < a->n_hits; i++) {
    assert_true(span_equal(a->hits[i].key, b->hits[i].key));
    assert_memory_equal(&a->hits[i].score, &b->hits[i].score, sizeof(float));
  }
  assert_shown(a, b);
  assert_int_equal(a->receipt.is_exact, b->receipt.is_exact);
  assert_int_equal(a->receipt.has_bound, b->receipt.has_bound);
  assert_memory_equal(&a->receipt.bound, &b->receipt.bound, sizeof(float));
  assert_int_equal(a->counts.items, b->counts.items);
  assert_int_equal(a->counts.admitted, b->counts.admitted);
  assert_int_equal(a->counts.has_admitted, b->counts.has_admitted);
}

/* Every other query has one: that of an item. */
static struct query draw_min_score(struct dice *d, const struct world *w, uint32_t k)
{
  bool has_one = w->n > 0 && dice_below(d, 2) == 0;

  return (struct query){
    .k = k,
    .has_min_score = has_one,
    .min_score = has_one ? w->items[dice_below(d, w->n)].score : 0.0f,
  };
}

static void random_splits_of_random_answers_become_the_whole(void **state)
{
  struct dice d = { seed };
  struct region region = { 0 };
  static struct world world;
  static struct hit hits[SHARDS_MAX + 1][ITEMS_MAX];
  static struct merge_part parts[SHARDS_MAX];
  const struct merge_part *list[SHARDS_MAX];
  struct answer whole, joined;

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t n_shards = 1 + (uint32_t)dice_below(&d, SHARDS_MAX), k = 1 + (uint32_t)dice_below(&d, ITEMS_MAX + 10);
    draw_world(&d, n_shards, &world);
    const struct query query = draw_min_score(&d, &world, k);
    for (uint32_t shard = 0; shard < n_shards; shard++) {
      parts[shard] = (struct merge_part){ .head = { .shard = shard, .n_shards = n_shards, .k = k } };
      search(&world, shard, k, hits[shard], &parts[shard].answer);
      min_score_cut(&query, &parts[shard].answer);
      list[shard] = &parts[shard];
    }
    search(&world, UINT32_MAX, k, hits[n_shards], &whole);
    min_score_cut(&query, &whole);
    region_reset(&region);
    assert_ok(merge_join(kernels, list, n_shards, &region, &joined));
    assert_same(&joined, &whole);
  }
  region_fini(&region);
}

/* ---- Hits that are chosen among candidates ---- */

/* Give the items vectors, of which many are alike. */
static void draw_vectors(struct dice *d, struct world *w)
{
  for (size_t i = 0; i < w->n; i++) {
    for (size_t k = 0; k < DIM; k++)
      w->vectors[i][k] = (float)dice_below(d, 3) - 1.0f;
    w->items[i].vector = (struct floats){ w->vectors[i], DIM };
  }
}

static void random_splits_of_candidates_have_the_hits_of_the_whole(void **state)
{
  struct dice d = { seed };
  struct region region = { 0 };
  static struct world world;
  static struct hit hits[SHARDS_MAX + 1][ITEMS_MAX];
  static struct merge_part parts[SHARDS_MAX];
  const struct merge_part *list[SHARDS_MAX];
  struct explanation explanations[1], of_shard[SHARDS_MAX][1];
  struct answer whole, joined;

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t n_shards = 1 + (uint32_t)dice_below(&d, SHARDS_MAX), wide = 1 + (uint32_t)dice_below(&d, ITEMS_MAX + 10);
    struct partial head = { .n_shards = n_shards,
                            .k = 1 + (uint32_t)dice_below(&d, wide),
                            .candidates = wide,
                            .diversity = (1 + (double)dice_below(&d, 4)) / 4 };
    draw_world(&d, n_shards, &world);
    draw_vectors(&d, &world);
    search(&world, UINT32_MAX, wide, hits[n_shards], &whole);
    size_t explained = whole.n_hits ? dice_below(&d, whole.n_hits) : 0;
    for (uint32_t shard = 0; shard < n_shards; shard++) {
      parts[shard] = (struct merge_part){ .head = head };
      parts[shard].head.shard = shard;
      search(&world, shard, wide, hits[shard], &parts[shard].answer);
      bool has_it = whole.n_hits > 0 && world.shard_of[explained] == shard;
      of_shard[shard][0] = has_it ? (struct explanation){ .key = whole.hits[explained].key, .verdict = VERDICT_HIT }
                                  : (struct explanation){ .verdict = VERDICT_NO_ITEM };
      parts[shard].answer.explanations = of_shard[shard];
      parts[shard].answer.n_explanations = whole.n_hits > 0;
      list[shard] = &parts[shard];
    }
    if (whole.n_hits > 0)
      explanations[0] = (struct explanation){ .key = whole.hits[explained].key, .verdict = VERDICT_HIT };
    whole.explanations = explanations;
    whole.n_explanations = whole.n_hits > 0;
    region_reset(&region);
    assert_ok(mmr_choose(kernels, head.diversity, head.k, &region, &whole));
    assert_ok(merge_join(kernels, list, n_shards, &region, &joined));
    assert_same(&joined, &whole);
    if (whole.n_explanations > 0) {
      assert_int_equal(joined.explanations[0].verdict, whole.explanations[0].verdict);
      assert_int_equal(joined.explanations[0].rank, whole.explanations[0].rank);
    }
  }
  region_fini(&region);
}

/* ---- At most n of a value ---- */

static size_t count_value(const struct hit *hits, size_t n, const struct value *value)
{
  size_t count = 0;

  for (size_t i = 0; i < n; i++)
    count += value->kind && hits[i].value.kind && hits[i].value.integer == value->integer;
  return count;
}

static void draw_values(struct dice *d, struct world *w)
{
  size_t n_values = 1 + dice_below(d, 12);

  for (size_t i = 0; i < w->n; i++) {
    if (dice_below(d, 6))
      w->items[i].value = (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(d, n_values) };
  }
}

/* What an exact search of a shard, or of all, says with at most n hits of a value. */
static void search_limited(const struct world *w, uint32_t shard, const struct partial *head, struct hit *hits,
                           struct answer *out)
{
  *out = (struct answer){ .hits = hits, .receipt = { .is_exact = true } };
  for (size_t i = 0; i < w->n; i++) {
    const struct hit *item = &w->items[i];
    if ((shard != UINT32_MAX && w->shard_of[i] != shard) ||
        count_value(hits, out->n_hits, &item->value) >= head->max_per)
      continue;
    if (out->n_hits < head->k) {
      hits[out->n_hits++] = *item;
    } else if (!out->receipt.has_bound) {
      out->receipt.has_bound = true;
      out->receipt.bound = hits[head->k - 1].score;
    }
  }
}

/* Explain an item of the catalogue. */
static struct explanation explain(const struct hit *item, const struct answer *answer, const struct partial *head)
{
  struct explanation e = { .key = item->key, .score = item->score, .verdict = VERDICT_CROWDED_OUT };
  const struct hit *last = &answer->hits[answer->n_hits - 1];

  for (size_t i = 0; i < answer->n_hits; i++) {
    if (span_equal(answer->hits[i].key, item->key))
      e.verdict = VERDICT_HIT;
  }
  if (e.verdict != VERDICT_HIT && answer->n_hits == head->k && compare_hits(item, last) > 0)
    e.verdict = VERDICT_OUTRANKED;
  return e;
}

/* Without a bound, all that is not crowded out is there; no bound is below what is not. */
static void assert_bound(const struct world *w, const struct partial *head, const struct answer *joined)
{
  const struct answer *a = joined;

  for (size_t i = 0; i < w->n; i++) {
    const struct hit *item = &w->items[i];
    if (explain(item, a, head).verdict == VERDICT_HIT || count_value(a->hits, a->n_hits, &item->value) >= head->max_per)
      continue;
    assert_true(a->receipt.has_bound);
    assert_true(item->score <= a->receipt.bound);
  }
  assert_true(!a->receipt.has_bound || a->receipt.bound == a->hits[a->n_hits - 1].score);
}

static void random_splits_with_at_most_n_of_a_value_become_the_whole(void **state)
{
  struct dice d = { seed };
  struct region region = { 0 };
  static struct world world;
  static struct hit hits[SHARDS_MAX + 1][ITEMS_MAX];
  static struct merge_part parts[SHARDS_MAX];
  static struct explanation explanations[SHARDS_MAX][1];
  const struct merge_part *list[SHARDS_MAX];
  struct answer whole, joined;
  size_t n_crowded = 0;

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t n_shards = 1 + (uint32_t)dice_below(&d, SHARDS_MAX);
    struct partial head = { .n_shards = n_shards,
                            .k = 1 + (uint32_t)dice_below(&d, ITEMS_MAX / 2),
                            .max_per = 1 + (uint32_t)dice_below(&d, 4) };
    draw_world(&d, n_shards, &world);
    draw_values(&d, &world);
    size_t explained = world.n ? dice_below(&d, world.n) : 0;
    for (uint32_t shard = 0; shard < n_shards; shard++) {
      struct answer *part = &parts[shard].answer;
      parts[shard].head = head;
      parts[shard].head.shard = shard;
      search_limited(&world, shard, &head, hits[shard], part);
      part->explanations = explanations[shard];
      part->n_explanations = world.n > 0;
      explanations[shard][0] = (struct explanation){ .verdict = VERDICT_NO_ITEM };
      if (world.n > 0 && world.shard_of[explained] == shard)
        explanations[shard][0] = explain(&world.items[explained], part, &head);
      list[shard] = &parts[shard];
    }
    search_limited(&world, UINT32_MAX, &head, hits[n_shards], &whole);
    region_reset(&region);
    assert_ok(merge_join(kernels, list, n_shards, &region, &joined));
    assert_int_equal(joined.n_hits, whole.n_hits);
    for (size_t i = 0; i < whole.n_hits; i++)
      assert_true(span_equal(joined.hits[i].key, whole.hits[i].key));
    assert_shown(&joined, &whole);
    assert_true(joined.receipt.is_exact);
    if (whole.n_hits > 0)
      assert_bound(&world, &head, &joined);
    if (world.n > 0) {
      enum verdict verdict = explain(&world.items[explained], &whole, &head).verdict;
      assert_int_equal(joined.explanations[0].verdict, verdict);
      n_crowded += verdict == VERDICT_CROWDED_OUT;
    }
  }
  assert_true(n_crowded > 100);
  region_fini(&region);
}

/* ---- Receipts ---- */

/* Two parts of one hit each, with bounds. */
struct pair {
  struct hit hits[2];
  struct merge_part parts[2];
  const struct merge_part *list[2];
};

static void make_pair(struct pair *p, uint32_t k, uint32_t n_shards)
{
  static const char *const keys[] = { "a", "b" };

  for (uint32_t i = 0; i < 2; i++) {
    p->hits[i] = (struct hit){ .key = span_of_str(keys[i]), .score = 3.0f - (float)i };
    p->parts[i] = (struct merge_part){
      .head = { .shard = i, .n_shards = n_shards, .k = k },
      .answer = { .hits = &p->hits[i], .n_hits = 1, .receipt = { .is_exact = true } },
    };
    p->list[i] = &p->parts[i];
  }
}

static void an_approximate_part_makes_the_answer_approximate(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 1, 2);
  p.parts[1].answer.receipt = (struct receipt){ .has_bound = true, .bound = 5.0f };
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_false(out.receipt.is_exact);
  assert_true(out.receipt.has_bound);
  assert_true(out.receipt.bound == 5.0f);
  region_fini(&region);
}

static void a_bound_below_the_last_hit_proves_a_part_exact(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 1, 2);
  p.parts[1].answer.receipt = (struct receipt){ .has_bound = true, .bound = 2.5f };
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_true(out.receipt.is_exact);
  assert_true(out.receipt.bound == 3.0f);
  p.parts[1].answer.receipt.bound = 3.0f; /* an item that ties with the last hit may be missing */
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_false(out.receipt.is_exact);
  region_fini(&region);
}

static void a_missing_shard_may_have_any_item(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 3);
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_false(out.receipt.is_exact);
  assert_true(out.receipt.has_bound);
  assert_true(isinf(out.receipt.bound));
  assert_int_equal(out.n_parts, 2);
  assert_int_equal(out.n_shards, 3);
  region_fini(&region);
}

/* ---- The rest ---- */

static void watermarks_are_united_in_order(void **state)
{
  static const struct position first[] = { { 0, 10 }, { 2, 30 } }, second[] = { { 1, 20 }, { 3, 40 } };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 2);
  p.parts[0].answer.watermark = first;
  p.parts[1].answer.watermark = second;
  p.parts[0].answer.n_watermark = p.parts[1].answer.n_watermark = 2;
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.n_watermark, 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(out.watermark[i].partition, i);
    assert_int_equal(out.watermark[i].next, 10 * (i + 1));
  }
  region_fini(&region);
}

static void the_answer_names_the_generation_and_the_model_of_its_parts(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 2);
  for (size_t i = 0; i < 2; i++) {
    p.parts[i].answer.generation = 3;
    snprintf(p.parts[i].answer.model, sizeof p.parts[i].answer.model, "%s", "0123456789abcdef");
  }
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.generation, 3);
  assert_string_equal(out.model, "0123456789abcdef");
  region_fini(&region);
}

static void similarities_and_the_time_of_ages_are_those_of_the_parts(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  for (uint32_t max_per = 0; max_per < 2; max_per++) {
    make_pair(&p, 2, 2);
    for (size_t i = 0; i < 2; i++) {
      p.parts[i].head.max_per = max_per;
      p.parts[i].answer.is_boosted = true;
      p.parts[i].answer.now_unix_ms = 1790000000250;
      p.hits[i].similarity = 1.0f + (float)i; /* the boosts have turned the order around */
    }
    assert_ok(merge_join(kernels, p.list, 2, &region, &out));
    assert_true(out.is_boosted && out.now_unix_ms == 1790000000250);
    assert_int_equal(out.n_hits, 2);
    assert_true(span_equal(out.hits[0].key, span_of_str("a")));
    assert_true(out.hits[0].similarity == 1.0f && out.hits[1].similarity == 2.0f);
  }
  make_pair(&p, 2, 2);
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_false(out.is_boosted);
  region_fini(&region);
}

static void counts_are_summed_and_times_are_the_slowest(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 2);
  p.parts[0].answer.counts = (struct counts){ 10, 5, 7, true, 9, false };
  p.parts[1].answer.counts = (struct counts){ 20, 6, 8, false, 0, false };
  p.parts[0].answer.queued_us = 5, p.parts[1].answer.queued_us = 3;
  p.parts[0].answer.searched_us = 100, p.parts[1].answer.searched_us = 200;
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.counts.items, 30);
  assert_int_equal(out.counts.scored, 11);
  assert_int_equal(out.counts.candidates, 15);
  assert_false(out.counts.has_admitted); /* one part does not know */
  assert_int_equal(out.queued_us, 5);
  assert_int_equal(out.searched_us, 200);
  assert_false(out.has_time);
  region_fini(&region);
}

static void the_time_of_the_answer_is_that_of_the_oldest_state(void **state)
{
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 2);
  p.parts[0].answer.has_time = p.parts[1].answer.has_time = true;
  for (int64_t first = 1000; first <= 3000; first += 2000) {
    p.parts[0].answer.time_unix_ms = first;
    p.parts[1].answer.time_unix_ms = 2000;
    assert_ok(merge_join(kernels, p.list, 2, &region, &out));
    assert_true(out.has_time);
    assert_int_equal(out.time_unix_ms, first < 2000 ? first : 2000);
  }
  region_fini(&region);
}

static void an_item_that_was_a_hit_of_its_shard_may_be_outranked(void **state)
{
  struct explanation first[] = {
    { .key = span_of_str("a"), .verdict = VERDICT_HIT, .has_score = true, .score = 3.0f, .rank = 1 },
    { .key = span_of_str("b"), .verdict = VERDICT_NO_ITEM }
  };
  struct explanation second[] = {
    { .key = span_of_str("a"), .verdict = VERDICT_NO_ITEM },
    { .key = span_of_str("b"), .verdict = VERDICT_HIT, .has_score = true, .score = 2.0f, .rank = 1 }
  };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 1, 2);
  p.parts[0].answer.explanations = first;
  p.parts[1].answer.explanations = second;
  p.parts[0].answer.n_explanations = p.parts[1].answer.n_explanations = 2;
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.n_explanations, 2);
  assert_int_equal(out.explanations[0].verdict, VERDICT_HIT);
  assert_int_equal(out.explanations[0].rank, 1);
  assert_int_equal(out.explanations[1].verdict, VERDICT_OUTRANKED);
  assert_int_equal(out.explanations[1].rank, 0);
  assert_true(out.explanations[1].below_last_hit == 1.0f);
  region_fini(&region);
}

/* Only a forged part has an explanation where no hits are wanted. */
static void an_item_where_no_hits_are_wanted_is_none(void **state)
{
  struct explanation item = { .key = span_of_str("a"), .verdict = VERDICT_HIT, .has_score = true, .score = 3.0f };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 0, 1);
  p.parts[0].answer.n_hits = 0;
  p.parts[0].answer.explanations = &item;
  p.parts[0].answer.n_explanations = 1;
  assert_ok(merge_join(kernels, p.list, 1, &region, &out));
  assert_int_equal(out.n_hits, 0);
  assert_int_equal(out.explanations[0].verdict, VERDICT_MISSED);
  region_fini(&region);
}

/* Its score is compared with the query's, and with no hit. */
static void an_item_that_is_too_low_stays_so(void **state)
{
  struct explanation first[] = { { .key = span_of_str("x"), .verdict = VERDICT_NO_ITEM } };
  struct explanation second[] = {
    { .key = span_of_str("x"), .verdict = VERDICT_TOO_LOW, .has_score = true, .score = 1.0f }
  };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  make_pair(&p, 5, 2);
  p.parts[0].answer.explanations = first;
  p.parts[1].answer.explanations = second;
  p.parts[0].answer.n_explanations = p.parts[1].answer.n_explanations = 1;
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.explanations[0].verdict, VERDICT_TOO_LOW);
  assert_int_equal(out.explanations[0].rank, 0);
  region_fini(&region);
}

/* Its shard's search was approximate. */
static void an_item_that_belongs_among_the_hits_and_is_not_there_was_missed(void **state)
{
  static const struct {
    uint32_t k;
    float score;
    enum verdict verdict;
  } cases[] = { { 5, 1.0f, VERDICT_MISSED }, { 2, 2.5f, VERDICT_MISSED }, { 2, 1.0f, VERDICT_OUTRANKED } };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct explanation item = { .key = span_of_str("x"), .verdict = VERDICT_HIT, .score = cases[i].score, .rank = 1 };
    make_pair(&p, cases[i].k, 2);
    p.parts[0].answer.explanations = &item;
    p.parts[0].answer.n_explanations = 1;
    assert_ok(merge_join(kernels, p.list, 2, &region, &out));
    assert_int_equal(out.explanations[0].verdict, cases[i].verdict);
    assert_int_equal(out.explanations[0].rank, 0);
  }
  region_fini(&region);
}

static void an_item_that_no_part_has_is_unknown_while_a_shard_is_missing(void **state)
{
  struct explanation none[] = { { .key = span_of_str("x"), .verdict = VERDICT_NO_ITEM } };
  struct explanation filtered[] = { { .key = span_of_str("x"), .verdict = VERDICT_FILTERED } };
  struct region region = { 0 };
  struct pair p;
  struct answer out;

  (void)state;
  for (uint32_t n_shards = 2; n_shards <= 3; n_shards++) {
    make_pair(&p, 5, n_shards);
    p.parts[0].answer.explanations = p.parts[1].answer.explanations = none;
    p.parts[0].answer.n_explanations = p.parts[1].answer.n_explanations = 1;
    assert_ok(merge_join(kernels, p.list, 2, &region, &out));
    assert_int_equal(out.explanations[0].verdict, n_shards == 2 ? VERDICT_NO_ITEM : VERDICT_UNKNOWN);
    assert_true(span_equal(out.explanations[0].key, span_of_str("x")));
  }
  p.parts[1].answer.explanations = filtered; /* known, although a shard is missing */
  assert_ok(merge_join(kernels, p.list, 2, &region, &out));
  assert_int_equal(out.explanations[0].verdict, VERDICT_FILTERED);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_splits_of_random_answers_become_the_whole),
    cmocka_unit_test(random_splits_of_candidates_have_the_hits_of_the_whole),
    cmocka_unit_test(random_splits_with_at_most_n_of_a_value_become_the_whole),
    cmocka_unit_test(an_approximate_part_makes_the_answer_approximate),
    cmocka_unit_test(a_bound_below_the_last_hit_proves_a_part_exact),
    cmocka_unit_test(a_missing_shard_may_have_any_item),
    cmocka_unit_test(watermarks_are_united_in_order),
    cmocka_unit_test(the_answer_names_the_generation_and_the_model_of_its_parts),
    cmocka_unit_test(similarities_and_the_time_of_ages_are_those_of_the_parts),
    cmocka_unit_test(counts_are_summed_and_times_are_the_slowest),
    cmocka_unit_test(the_time_of_the_answer_is_that_of_the_oldest_state),
    cmocka_unit_test(an_item_that_was_a_hit_of_its_shard_may_be_outranked),
    cmocka_unit_test(an_item_where_no_hits_are_wanted_is_none),
    cmocka_unit_test(an_item_that_is_too_low_stays_so),
    cmocka_unit_test(an_item_that_belongs_among_the_hits_and_is_not_there_was_missed),
    cmocka_unit_test(an_item_that_no_part_has_is_unknown_while_a_shard_is_missing),
  };

  seed = dice_seed();
  if (kernels_get(isa_detect(), &kernels) != ERR_OK)
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
