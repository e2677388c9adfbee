/* SPDX-License-Identifier: Apache-2.0 */
/* From the hits of a round to the best sums, and from these to what the next round admits. */
#include "engine/boosts/boosted_search.h"

#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/size.h"

/* The first round finds more hits than are wanted: the lower its last one, the fewer items are left. Twice as many
 * more, but FIRST_MORE_MAX at most: many hits take memory. Later rounds find LATER_TIMES as many as the round before,
 * up to LATER_MAX, or all that are left if these are at most ALL_MAX. */
enum {
  FIRST_TIMES = 2,
  FIRST_MORE = 10,
  FIRST_MORE_MAX = 1 << 13,
  LATER_TIMES = 4,
  LATER_MAX = 1 << 16,
  ALL_MAX = 4096
};

/* Items that are left are compared by their values if they are fewer than in a bucket of a column, whose values may be
 * very different; and from the COMPARED_FROM-th round on, which few searches come to. */
enum { COMPARED_SHARE = 128, COMPARED_FROM = 2, NOTED_WORDS = 4096 };

/* An approximate method may find few hits however many it is asked for. */
enum { ROUNDS_MAX = 64, APPROXIMATE_ROUNDS_MAX = 8 };

/* If a sixteenth of the items is left, and some thousands, a scan pays, or a round among about SEEDS items, found by a
 * sample. With several boosts, each round takes a pass over all levels, and a scan pays earlier. */
enum { MANY_SHARE = 16, SCANNED_SHARE = 64, MANY_MIN = 4096, SAMPLE = 2048, SEEDS = 1024, SEEDS_SHARE = 4 };

err_t boosted_search_begin(const struct boosted_target *on, const struct query *query, struct region *region,
                           struct boosted_search *out)
{
  *out = (struct boosted_search){ .on = *on };
  return boosts_bind(on->arena, on->attributes, query, region, &out->boosts);
}

err_t boosted_search_start(struct boosted_search *s, const struct query *query, const struct admit *admit,
                           struct answer *answer, struct region *region)
{
  size_t n_hits = size_min(query->k, s->on.arena->n_slots);

  if (n_hits > s->max_hits)
    TRY(region_array(region, n_hits, sizeof *s->hits, &s->hits));
  s->max_hits = size_max(n_hits, s->max_hits);
  s->query = query;
  s->admitted = admit;
  s->answer = answer;
  s->plain = *query;
  s->k = query->k + size_min(FIRST_TIMES * (size_t)query->k + FIRST_MORE, FIRST_MORE_MAX);
  s->plain.k = (uint32_t)size_min(s->k, UINT32_MAX);
  s->admit = *admit;
  s->found = *answer;
  s->n_hits = s->n_found = s->n_rounds = 0;
  s->most_similar = INFINITY;
  s->missed_below = -INFINITY;
  s->is_narrowed = s->is_seeding = s->was_thinned = s->is_done = false;
  return ERR_OK;
}

/* ---- The hits of a round ---- */

/* Score what the round has found, and keep the k best of all hits. */
static err_t keep_best(struct boosted_search *s, struct region *scratch)
{
  size_t n_all = s->n_hits + s->found.n_hits;
  struct hit *all;

  TRY(region_array(scratch, n_all, sizeof *all, &all));
  if (s->n_hits > 0)
    memcpy(all, s->hits, s->n_hits * sizeof *all);
  if (s->found.n_hits > 0)
    memcpy(all + s->n_hits, s->found.hits, s->found.n_hits * sizeof *all);
  boosts_add(&s->boosts, all + s->n_hits, s->found.n_hits);
  if (n_all > 0)
    qsort(all, n_all, sizeof *all, query_compare_hits);
  s->n_hits = size_min(n_all, s->query->k);
  if (s->n_hits > 0)
    memcpy(s->hits, all, s->n_hits * sizeof *all);
  return ERR_OK;
}

/* Return the sum that an item needs to be among the hits: equal ones come in the order of their keys. */
static float threshold_of(const struct boosted_search *s)
{
  return s->n_hits > 0 && s->n_hits == s->query->k ? s->hits[s->n_hits - 1].score : -INFINITY;
}

/* Bound the similarity of what the round has left. One among seeds says nothing about the other items. */
static void bound_similarity(struct boosted_search *s)
{
  const struct answer *found = &s->found;

  if (s->is_seeding)
    return;
  bool is_all = found->n_hits == 0 || (found->receipt.is_exact && !found->receipt.has_bound);
  s->most_similar = is_all ? -INFINITY : fminf(s->most_similar, found->hits[found->n_hits - 1].score);
}

/* ---- The next round ---- */

/* Return the sum of boosts that an item needs, if it is as similar as those that are left may be. */
static double least_boosts(const struct boosted_search *s)
{
  return boosts_least(threshold_of(s), (double)s->most_similar);
}

/* Is this the last round, whatever is left? */
static bool is_last(const struct boosted_search *s)
{
  return s->n_rounds + 1 >= (s->found.receipt.is_exact ? ROUNDS_MAX : APPROXIMATE_ROUNDS_MAX);
}

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
  double drawn[SAMPLE], least = least_boosts(s);
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

/* Does it pay to make the items that are left fewer, if they are about n? Once in a search. */
static bool are_many(const struct boosted_search *s, uint64_t n, size_t share)
{
  return n > s->on.arena->n_slots / share && n > MANY_MIN;
}

static bool may_thin(const struct boosted_search *s)
{
  return !s->was_thinned && s->on.is_exact && threshold_of(s) > -INFINITY;
}

/* Does a scan pay? A sample tells, in a fraction of the time of finding what is left. */
static bool scan_pays(struct boosted_search *s)
{
  size_t share = s->boosts.n > 1 ? SCANNED_SHARE : MANY_SHARE;

  return s->on.columns->ops->score_tables && may_thin(s) &&
         are_many(s, boost_bounds_estimate(s->bounds, least_boosts(s), s->left, s->words), share);
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
  for (size_t i = 0; i < s->n_hits; i++)
    kth_best_add(&scan->best, s->hits[i].score);
  kth_best_cut(&scan->best);
  scan->bounds = s->bounds;
  scan->words = s->left;
  s->scan = scan;
  return ERR_OK;
}

/* Let a round among the best seeds come before that among the n items of the words, if these are many. */
static void thin_out(struct boosted_search *s, uint64_t *n)
{
  if (s->on.columns->ops->score_tables || !may_thin(s) || !are_many(s, *n, MANY_SHARE))
    return;
  s->was_thinned = true;
  seed(s, n);
}

/* Is an item a hit, or, if it scores at most so much, can it be one? */
static bool comes_among_hits(const struct boosted_search *s, uint32_t slot, float score)
{
  float threshold = threshold_of(s);

  if (score != threshold || threshold == -INFINITY)
    return score > threshold || threshold == -INFINITY;
  return span_compare(keys_get(&s->on.arena->keys, slot), s->hits[s->n_hits - 1].key) < 0;
}

/* Would an item be a hit if it were as similar as those that are left may be? */
static bool can_be_hit(const struct boosted_search *s, uint32_t slot)
{
  return comes_among_hits(s, slot, boosts_score(s->most_similar, boosts_of_slot(&s->boosts, slot)));
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

  n = select_least(s, n <= few ? -INFINITY : least_boosts(s));
  return n <= few || s->n_rounds >= COMPARED_FROM || !s->on.is_exact ? compare_left(s) : n;
}

/* Return how many hits a later round asks for. Those with one filter mostly have one boost: then the most similar
 * items have the best sums. */
static uint32_t later_k(struct boosted_search *s)
{
  bool has_one_filter = s->boosts.n == 1 && s->boosts.v[0].filter;

  if (s->n_rounds == 0 && has_one_filter)
    s->k = size_min(s->k, s->query->k + (size_t)FIRST_MORE);
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

/* Admit the items that can still be hits, or let a scan find them. */
static err_t narrow(struct boosted_search *s, struct region *kept, struct region *scratch)
{
  if (!s->left)
    TRY(make_later(s, kept));
  if (!s->is_narrowed)
    begin_later(s);
  clear_found(s);
  s->is_seeding = false;
  if (scan_pays(s))
    return prepare_scan(s, scratch);
  uint64_t n = select_left(s);
  thin_out(s, &n);
  admit_left(s, n);
  return ERR_OK;
}

/* Let `found` be hits of the scan, up to its capacity, from word *w on. Its array has room for those of one word more. */
static void list_scanned(struct boosted_search *s, size_t capacity, size_t *w)
{
  struct score_tables *similarity = s->scan->similarity;

  for (s->found.n_hits = 0; *w < bits_words(s->on.arena->n_slots) && s->found.n_hits < capacity; (*w)++) {
    for (uint64_t rest = s->left[*w]; rest; rest &= rest - 1) {
      uint32_t slot = (uint32_t)(*w * 64 + (size_t)__builtin_ctzll(rest));
      float score = similarity->ops->score(similarity, slot);
      if (comes_among_hits(s, slot, boosts_score(score, boosts_of_slot(&s->boosts, slot))))
        s->found.hits[s->found.n_hits++] = (struct hit){ .slot = slot, .score = score };
    }
  }
}

/* The scan has left the k best sums, and others that are equal to the last of them. */
err_t boosted_search_take_scan(struct boosted_search *s, struct region *scratch)
{
  const struct counts work = { .scored = s->scan->n_scored, .candidates = s->scan->n_scored };
  size_t capacity = size_min(s->scan->n_left, ALL_MAX), n_words = bits_words(s->on.arena->n_slots);

  query_add_counts(&work, &s->answer->counts);
  TRY(region_array(scratch, capacity + 64, sizeof *s->found.hits, &s->found.hits));
  for (size_t w = 0; s->scan->n_left > 0 && w < n_words;) {
    struct region_mark mark = region_mark(scratch);
    progress_note();
    list_scanned(s, capacity, &w);
    TRY(keep_best(s, scratch));
    region_rewind(scratch, mark);
  }
  s->scan = NULL;
  s->is_done = true;
  return ERR_OK;
}

/* ---- The answer ---- */

/* Bound what an item scores that is not more similar than this. */
static float bound_score(const struct boosted_search *s, float similarity)
{
  return boosts_score(similarity, boost_bounds_highest(&s->boosts));
}

static void join(struct boosted_search *s)
{
  const struct receipt *found = &s->found.receipt;

  if (s->n_rounds == 0)
    *s->answer = s->found;
  else
    query_add_counts(&s->found.counts, &s->answer->counts);
  if (found->has_bound && !found->is_exact)
    s->missed_below = fmaxf(s->missed_below, bound_score(s, found->bound));
}

err_t boosted_search_take(struct boosted_search *s, struct region *kept, struct region *scratch)
{
  TRY(keep_best(s, scratch));
  s->n_found += s->found.n_hits;
  bound_similarity(s);
  join(s);
  s->is_done = s->most_similar == -INFINITY || boost_bounds_highest(&s->boosts) < least_boosts(s);
  if (!s->is_done && is_last(s)) {
    s->missed_below = fmaxf(s->missed_below, bound_score(s, s->most_similar));
    s->is_done = true;
  }
  if (!s->is_done)
    TRY(narrow(s, kept, scratch));
  s->n_rounds++;
  return ERR_OK;
}

/* What the hits guarantee. */
static void write_receipt(const struct boosted_search *s, struct receipt *out)
{
  float threshold = threshold_of(s), missed_below = s->missed_below;

  if (s->n_found == s->admitted->n_admitted)
    missed_below = -INFINITY; /* an approximate method has found all in the end */
  out->is_exact = missed_below == -INFINITY || missed_below < threshold;
  out->has_bound = s->n_hits < s->admitted->n_admitted;
  out->bound = out->has_bound ? fmaxf(threshold, missed_below) : 0.0f;
}

err_t boosted_search_write(struct boosted_search *s, struct region *region)
{
  struct answer *answer = s->answer;

  write_receipt(s, &answer->receipt);
  answer->is_boosted = true;
  answer->now_unix_ms = s->query->now_unix_ms;
  answer->n_hits = s->n_hits;
  TRY(region_array(region, s->n_hits, sizeof *answer->hits, &answer->hits));
  for (size_t i = 0; i < s->n_hits; i++) {
    answer->hits[i] = s->hits[i];
    TRY(region_copy(region, s->hits[i].key, &answer->hits[i].key));
  }
  return ERR_OK;
}
