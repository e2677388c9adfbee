/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: from the hits of one to the best sums, and from these to the answer. */
#include "engine/boosts/boosted_search.h"

#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/size.h"
#include "engine/boosts/boosted_left.h"

/* The first round finds more hits than are wanted: the lower its last one, the fewer items are left. Twice as many
 * more, but FIRST_MORE_MAX at most: many hits take memory. */
enum { FIRST_TIMES = 2, FIRST_MORE = 10, FIRST_MORE_MAX = 1 << 13 };

/* Hits of a scan that are sorted at a time, with the k best so far: at least so many, or k. */
enum { LISTED_MIN = 4096, NOTED_WORDS = 4096 };

/* An approximate method may find few hits however many it is asked for. */
enum { ROUNDS_MAX = 64, APPROXIMATE_ROUNDS_MAX = 8 };

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
  s->plain.has_min_score = false; /* it is for sums; a round finds what is similar */
  s->k = query->k + size_min(FIRST_TIMES * (size_t)query->k + FIRST_MORE, FIRST_MORE_MAX);
  s->plain.k = (uint32_t)size_min(s->k, UINT32_MAX);
  s->admit = *admit;
  s->found = *answer;
  s->n_hits = s->n_found = s->n_rounds = 0;
  s->most_similar = INFINITY;
  s->missed_below = -INFINITY;
  s->is_narrowed = s->is_seeding = s->was_seeded = s->is_done = false;
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

/* Bound the similarity of what the round has left. One among seeds says nothing about the other items. */
static void bound_similarity(struct boosted_search *s)
{
  const struct answer *found = &s->found;

  if (s->is_seeding)
    return;
  bool is_all = found->n_hits == 0 || (found->receipt.is_exact && !found->receipt.has_bound);
  s->most_similar = is_all ? -INFINITY : fminf(s->most_similar, found->hits[found->n_hits - 1].score);
}

/* ---- The hits of a scan ---- */

/* Let `found` be hits of the scan from word *w on: `capacity` of them, and at most those of one word more. */
static void list_scanned(struct boosted_search *s, size_t capacity, size_t *w)
{
  struct score_tables *similarity = s->scan->similarity;

  for (s->found.n_hits = 0; *w < bits_words(s->on.arena->n_slots) && s->found.n_hits < capacity; (*w)++) {
    if (*w % NOTED_WORDS == 0)
      progress_note();
    for (uint64_t rest = s->left[*w]; rest; rest &= rest - 1) {
      uint32_t slot = (uint32_t)(*w * 64 + (size_t)__builtin_ctzll(rest));
      float score = similarity->ops->score(similarity, slot);
      if (boosted_left_has_hit(s, slot, boosts_score(score, boosts_of_slot(&s->boosts, slot))))
        s->found.hits[s->found.n_hits++] = (struct hit){ .slot = slot, .score = score };
    }
  }
}

/* The scan has left items whose sums reach the k-th best. */
err_t boosted_search_take_scan(struct boosted_search *s, struct region *scratch)
{
  const struct counts work = { .scored = s->scan->n_scored, .candidates = s->scan->n_scored };
  size_t n_words = bits_words(s->on.arena->n_slots);
  size_t capacity = size_min(s->scan->n_left, size_max(LISTED_MIN, s->query->k));

  query_add_counts(&work, &s->answer->counts);
  TRY(region_array(scratch, capacity + 64, sizeof *s->found.hits, &s->found.hits));
  for (size_t w = 0; s->scan->n_left > 0 && w < n_words;) {
    struct region_mark mark = region_mark(scratch);
    list_scanned(s, capacity, &w);
    TRY(keep_best(s, scratch));
    region_rewind(scratch, mark);
  }
  s->scan = NULL;
  s->is_done = true;
  return ERR_OK;
}

/* ---- What rounds have missed ---- */

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

/* Is this the last round, whatever is left? */
static bool is_last(const struct boosted_search *s)
{
  return s->n_rounds + 1 >= (s->found.receipt.is_exact ? ROUNDS_MAX : APPROXIMATE_ROUNDS_MAX);
}

err_t boosted_search_take(struct boosted_search *s, struct region *kept, struct region *scratch)
{
  TRY(keep_best(s, scratch));
  s->n_found += s->found.n_hits;
  bound_similarity(s);
  join(s);
  s->is_done = s->most_similar == -INFINITY || boost_bounds_highest(&s->boosts) < boosted_left_least(s);
  if (!s->is_done && is_last(s)) {
    s->missed_below = fmaxf(s->missed_below, bound_score(s, s->most_similar));
    s->is_done = true;
  }
  if (!s->is_done)
    TRY(boosted_left_choose(s, kept, scratch));
  s->n_rounds++;
  return ERR_OK;
}

/* ---- The answer ---- */

/* What the hits guarantee. */
static void write_receipt(const struct boosted_search *s, struct receipt *out)
{
  float threshold = boosted_left_threshold(s), missed_below = s->missed_below;

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
