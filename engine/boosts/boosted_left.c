/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses what comes after a round: a scan if many items are left, else a round among these or the best of them. */
#include "engine/boosts/boosted_left.h"

#include <assert.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/size.h"

/* A round finds LATER_TIMES as many hits as the round before, up to LATER_MAX, or all that are left if these are at
 * most ALL_MAX. Those that one filter admits mostly have the same boost: then the most similar ones have the best sums,
 * and FILTERED_MORE than are wanted are enough. */
enum { LATER_TIMES = 4, LATER_MAX = 1 << 16, ALL_MAX = 4096, FILTERED_MORE = 10 };

/* Items that are left are compared by their values if they are fewer than in a bucket of a column, whose values may be
 * very different; and from the COMPARED_FROM-th round on, which few searches come to. */
enum { COMPARED_SHARE = 128, COMPARED_FROM = 2, NOTED_WORDS = 4096 };

/* If a sixteenth of the items is left, and some thousands, a scan pays, or a round among about SEEDS items, found by a
 * sample. With several boosts, each round takes a pass over all levels, and a scan pays earlier. */
enum { MANY_SHARE = 16, SCANNED_SHARE = 64, MANY_MIN = 4096, SAMPLE = 2048, SEEDS = 1024, SEEDS_SHARE = 4 };
static_assert(MANY_MIN > SEEDS, "the seeds are a part of many items");

/* ---- Which items are left ---- */

/* Make what later rounds need, once for all searches of the query. */
static err_t make_later(struct boosted_search *s, struct region *kept)
{
  size_t n_words = bits_words(s->on.arena->n_slots);

  TRY(region_array(kept, n_words, sizeof *s->left, &s->left));
  TRY(region_array(kept, n_words, sizeof *s->words, &s->words));
  TRY(boosts_evaluate(&s->boosts, &s->on.filters, kept, s->on.held));
  return boost_bounds_make(&s->boosts, s->on.kernels, kept, &s->bounds);
}

static void begin_later(struct boosted_search *s)
{
  memcpy(s->left, s->admitted->words, bits_words(s->on.arena->n_slots) * sizeof *s->left);
  for (size_t i = 0; i < s->admitted->n_excluded; i++)
    bits_clear(s->left, s->admitted->excluded[i]);
  s->is_narrowed = true;
}

static void clear_found(struct boosted_search *s)
{
  for (size_t i = 0; i < s->found.n_hits; i++)
    bits_clear(s->left, s->found.hits[i].slot);
}

/* Let the words be those of the items that are left and have at least these boosts. Returns how many. */
static uint64_t select_least(struct boosted_search *s, double least)
{
  memcpy(s->words, s->left, bits_words(s->on.arena->n_slots) * sizeof *s->words);
  return boost_bounds_narrow(s->bounds, least, s->words);
}

bool boosted_left_has_hit(const struct boosted_search *s, uint32_t slot, float score)
{
  float threshold = boosted_left_threshold(s);

  if (score != threshold || threshold == -INFINITY)
    return score > threshold || threshold == -INFINITY;
  if (s->n_hits < s->query->k || s->hits[s->n_hits - 1].score < threshold)
    return true; /* the threshold is the query's min_score */
  return span_compare(keys_get(&s->on.arena->keys, slot), s->hits[s->n_hits - 1].key) < 0;
}

/* Would an item be a hit if it were as similar as those that are left may be? */
static bool can_be_hit(const struct boosted_search *s, uint32_t slot)
{
  return boosted_left_has_hit(s, slot, boosts_score(s->most_similar, boosts_of_slot(&s->boosts, slot)));
}

/* Leave out the items of the words that cannot be hits. Returns how many are left. Where sums are equal, keys decide:
 * there may be many such sums, if large boosts swallow what makes similarities different. */
static uint64_t compare_left(struct boosted_search *s)
{
  size_t n_words = bits_words(s->on.arena->n_slots);

  for (size_t w = 0; w < n_words; w++) {
    if (w % NOTED_WORDS == 0)
      progress_note();
    for (uint64_t rest = s->words[w]; rest; rest &= rest - 1) {
      uint32_t slot = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
      if (!can_be_hit(s, slot))
        bits_clear(s->words, slot);
    }
  }
  return bits_count(s->words, n_words);
}

/* Find the items that can still be hits. Returns how many, or more. */
static uint64_t select_left(struct boosted_search *s)
{
  uint64_t few = s->on.arena->n_slots / COMPARED_SHARE, n = bits_count(s->left, bits_words(s->on.arena->n_slots));

  n = select_least(s, n <= few ? -INFINITY : boosted_left_least(s));
  return n <= few || s->n_rounds >= COMPARED_FROM || !s->on.is_exact ? compare_left(s) : n;
}

/* ---- If they are many ---- */

static int compare_falling(const void *a, const void *b)
{
  const double *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

/* Draw the boosts of a sample of the items of the words, the largest first: at most two of a word, because items that
 * came together may be alike. */
static size_t draw_sample(const struct boosted_search *s, double drawn[SAMPLE])
{
  size_t n_words = bits_words(s->on.arena->n_slots), step = n_words / (SAMPLE / 2) + 1, n = 0;

  for (size_t w = 0; w < n_words; w += step) {
    uint64_t rest = s->words[w];
    for (int i = 0; i < 2 && rest; i++, rest &= rest - 1)
      drawn[n++] = boosts_of_slot(&s->boosts, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)));
  }
  qsort(drawn, n, sizeof *drawn, compare_falling);
  return n;
}

/* Choose the items with the largest boosts, if they are much fewer than the n items of the words: about SEEDS, or as
 * many as the largest of the sample stands for. */
static void seed(struct boosted_search *s, uint64_t *n)
{
  double drawn[SAMPLE], least = boosted_left_least(s);
  size_t n_drawn = draw_sample(s, drawn);

  if (n_drawn == 0 || drawn[SEEDS * n_drawn / *n] <= least)
    return;
  uint64_t n_seeds = select_least(s, drawn[SEEDS * n_drawn / *n]);
  s->is_seeding = n_seeds <= *n / SEEDS_SHARE;
  if (s->is_seeding)
    *n = n_seeds;
  else
    *n = select_least(s, least);
}

/* Does it pay to make the items that are left fewer, if they are about n? */
static bool are_many(const struct boosted_search *s, uint64_t n, size_t share)
{
  return n > s->on.arena->n_slots / share && n > MANY_MIN;
}

/* Are there hits to compare with, and may the choice depend on where items lie? */
static bool may_choose(const struct boosted_search *s)
{
  return s->on.is_exact && boosted_left_least(s) > -INFINITY;
}

static bool may_scan(const struct boosted_search *s)
{
  return s->on.columns->ops->score_tables && may_choose(s);
}

/* Does a scan pay if about n items are left? */
static bool scan_pays(const struct boosted_search *s, uint64_t n)
{
  return may_scan(s) && are_many(s, n, s->boosts.n > 1 ? SCANNED_SHARE : MANY_SHARE);
}

/* Return about how many items are left, by a sample: in a fraction of the time of finding them. */
static uint64_t estimate_left(struct boosted_search *s)
{
  return boost_bounds_estimate(s->bounds, boosted_left_least(s), s->left, s->words);
}

/* Prepare a scan of all items that are left. */
static err_t prepare_scan(struct boosted_search *s, struct region *scratch)
{
  const struct space *space = s->on.in->space;
  const struct query *query = &s->plain;
  struct prepared_queries *prepared;
  struct boosted_scan *scan;

  TRY(region_array(scratch, 1, sizeof *scan, &scan));
  TRY(space->similarity->prepare_queries(space->model, s->on.kernels, &query, 1, scratch, &prepared));
  TRY(s->on.columns->ops->score_tables(s->on.columns, prepared, s->on.in->n_items, s->on.kernels, scratch,
                                       &scan->similarity));
  TRY(kth_best_init(s->query->k, scratch, &scan->best));
  scan->best.threshold = boosted_left_threshold(s);
  for (size_t i = 0; i < s->n_hits; i++)
    kth_best_add(&scan->best, s->hits[i].score);
  kth_best_cut(&scan->best);
  scan->bounds = s->bounds;
  scan->words = s->left;
  s->scan = scan;
  return ERR_OK;
}

/* Let a round among the best seeds come before that among the n items of the words, if these are many; once in a
 * search. */
static void begin_with_seeds(struct boosted_search *s, uint64_t *n)
{
  if (s->on.columns->ops->score_tables || s->was_seeded || !may_choose(s) || !are_many(s, *n, MANY_SHARE))
    return;
  s->was_seeded = true;
  seed(s, n);
}

/* ---- The next round ---- */

/* Return how many hits the next round asks for. */
static uint32_t later_k(struct boosted_search *s)
{
  bool has_one_filter = s->boosts.n == 1 && s->boosts.v[0].filter;

  if (s->n_rounds == 0 && has_one_filter && s->on.is_exact)
    s->k = size_min(s->k, s->query->k + (size_t)FILTERED_MORE);
  else
    s->k = size_min(LATER_TIMES * s->k, size_max(LATER_MAX, s->k));
  return (uint32_t)s->k;
}

/* Admit the n items of the words. If there are none, there is no further round. */
static void admit_left(struct boosted_search *s, uint64_t n)
{
  s->is_done = n == 0;
  s->plain.k = n <= ALL_MAX ? (uint32_t)n : later_k(s);
  s->admit = (struct admit){ .words = s->words, .n_admitted = n };
  if (s->is_seeding)
    return;
  uint64_t *others = s->left; /* cannot be hits any more */
  s->left = s->words;
  s->words = others;
}

err_t boosted_left_choose(struct boosted_search *s, struct region *kept, struct region *scratch)
{
  if (!s->left)
    TRY(make_later(s, kept));
  if (!s->is_narrowed)
    begin_later(s);
  clear_found(s);
  s->is_seeding = false;
  if (may_scan(s) && scan_pays(s, estimate_left(s)))
    return prepare_scan(s, scratch);
  uint64_t n = select_left(s);
  if (scan_pays(s, n)) /* the sample was wrong */
    return prepare_scan(s, scratch);
  begin_with_seeds(s, &n);
  admit_left(s, n);
  return ERR_OK;
}
