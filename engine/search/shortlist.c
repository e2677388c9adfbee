/* SPDX-License-Identifier: Apache-2.0 */
/* How a shortlist stays short: thresholds that rise as entries arrive, guesses from a sample, and exact scores for the
 * entries in doubt. */
#include "engine/search/shortlist.h"

#include <math.h>

enum {
  SPARE_ENTRIES = 64,
  GUESS_FROM = 8 * SHORTLIST_CHUNK, /* slots to scan before the sample is large enough */
  GUESS_ENTRIES = 256,              /* entries that a list gathers between two guesses, besides twice the rank */
};

/* Number of entries that a list may have before make_room() reduces it: a few times N. Then make_room() rarely works.
 * It also rarely needs exact scores, although the slack lets twice N entries or more pass. */
static size_t usual_entries(size_t n_best, size_t n_slots)
{
  return (4 * n_best < n_slots ? 4 * n_best : n_slots) + SPARE_ENTRIES;
}

size_t shortlist_bytes(size_t n_lists, size_t n_best, size_t n_slots)
{
  return n_lists * (usual_entries(n_best, n_slots) + 2 * SHORTLIST_CHUNK) * sizeof(struct scan_entry);
}

static const int32_t NO_GUESS = INT32_MIN;

static void set_threshold(struct scan_list *list, const struct shortlist_scale *scale, int32_t threshold)
{
  list->threshold = threshold;
  list->start = -scale->offset - threshold;
}

err_t shortlist_init(struct shortlists *s, size_t max_lists, size_t max_best, struct region *region)
{
  s->capacity = usual_entries(max_best, s->n_slots) + 2 * SHORTLIST_CHUNK;
  TRY(region_array(region, max_lists, sizeof *s->lists, &s->lists));
  TRY(region_array(region, max_lists, sizeof *s->n_admitted, &s->n_admitted));
  TRY(region_array(region, max_lists, sizeof *s->limits, &s->limits));
  TRY(region_array(region, max_lists, sizeof *s->guesses, &s->guesses));
  TRY(region_array(region, s->capacity, sizeof *s->exact_of, &s->exact_of));
  TRY(region_array(region, s->capacity, sizeof *s->spare, &s->spare));
  TRY(region_array(region, s->capacity, sizeof *s->scores, &s->scores));
  TRY(region_array(region, s->capacity, sizeof *s->tied, &s->tied));
  for (size_t i = 0; i < max_lists; i++)
    TRY(region_array(region, s->capacity, sizeof *s->lists[i].entries, &s->lists[i].entries));
  return ERR_OK;
}

void shortlist_reset(struct shortlists *s, const struct shortlist_scale *scales, size_t n_lists, size_t n_best,
                     bool is_guessing)
{
  s->n_lists = n_lists;
  s->n_best = n_best;
  s->n_unseen = s->n_seen = 0;
  s->n_usual = usual_entries(n_best, s->n_slots);
  s->is_guessing = is_guessing;
  s->scales = scales;
  for (size_t i = 0; i < n_lists; i++) {
    s->lists[i].n = s->n_admitted[i] = 0;
    s->limits[i] = (uint32_t)(is_guessing && GUESS_FROM < s->n_usual ? GUESS_FROM : s->n_usual);
    s->guesses[i] = NO_GUESS;
    set_threshold(&s->lists[i], &scales[i], -SHORTLIST_SCORE_MAX);
  }
}

void shortlist_stop_guessing(struct shortlists *s)
{
  s->is_guessing = false;
}

/* Move the entries that score `min_score` or more to the front. Returns their number. */
static size_t partition_ge(const struct shortlists *s, struct scan_entry *entries, size_t n, int32_t min_score)
{
  return s->kernels->partition_ge(entries, n, min_score, s->spare);
}

static int32_t median(int32_t a, int32_t b, int32_t c)
{
  int32_t low = a < b ? a : b, high = a < b ? b : a;

  return c < low ? low : c > high ? high : c;
}

/* Reorder the entries so that the k best come first, 1 <= k <= n. Returns the k-th best score. Pivots are picked by a
 * random sequence of this function, so that no order of the entries is slow. */
static int32_t select_best(const struct shortlists *s, struct scan_entry *entries, size_t n, size_t k)
{
  uint64_t dice = n;

  for (;;) {
    int32_t picks[3];
    for (int i = 0; i < 3; i++) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      picks[i] = entries[(dice >> 33) % n].score;
    }
    int32_t pivot = median(picks[0], picks[1], picks[2]);
    size_t n_above = partition_ge(s, entries, n, pivot + 1);
    if (k <= n_above) {
      n = n_above;
      continue;
    }
    entries += n_above;
    n -= n_above;
    k -= n_above;
    size_t n_same = partition_ge(s, entries, n, pivot);
    if (k <= n_same)
      return pivot;
    entries += n_same;
    n -= n_same;
    k -= n_same;
  }
}

/* Convert a float to an integer of the same order. Equal floats give equal integers. */
static int32_t ordered_of(float x)
{
  int32_t bits;

  x += 0.0f; /* -0 becomes 0 */
  memcpy(&bits, &x, sizeof bits);
  return bits >= 0 ? bits : bits ^ INT32_MAX;
}

static float float_of(int32_t ordered)
{
  int32_t bits = ordered >= 0 ? ordered : ordered ^ INT32_MAX;
  float x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

static bool are_slots(const struct shortlists *s, const struct scan_entry *entries, size_t n)
{
  uint32_t largest = 0;

  for (size_t e = 0; e < n; e++)
    largest = entries[e].slot > largest ? entries[e].slot : largest;
  return largest < s->n_slots;
}

static void drop_not_admitted(struct shortlists *s, size_t i)
{
  struct scan_list *list = &s->lists[i];
  uint32_t n = s->n_admitted[i];

  if (s->scales[i].admit->admits_all && are_slots(s, list->entries + n, list->n - n))
    n = list->n;
  for (uint32_t e = n; e < list->n; e++) {
    uint32_t slot = list->entries[e].slot;
    if (slot < s->n_slots && admit_slot(s->scales[i].admit, slot))
      list->entries[n++] = list->entries[e];
  }
  list->n = s->n_admitted[i] = n;
}

static void raise_threshold(struct shortlists *s, size_t i, double threshold)
{
  if (threshold > s->lists[i].threshold)
    set_threshold(&s->lists[i], &s->scales[i], (int32_t)fmin(threshold, SHORTLIST_SCORE_MAX));
}

/* Move the n_wanted entries with the first keys, of n entries that tie, to the front. */
static void select_by_key(struct shortlists *s, struct scan_entry *entries, size_t n, size_t n_wanted)
{
  int32_t score = entries[0].score;
  struct topk first;

  if (n_wanted == 0 || n_wanted == n)
    return;
  topk_init(&first, s->tied, n_wanted, s->order, s->order_context);
  for (size_t e = 0; e < n; e++)
    topk_push(&first, 0.0f, entries[e].slot);
  for (size_t e = 0; e < n_wanted; e++)
    entries[e] = (struct scan_entry){ score, s->tied[e].slot };
}

/* Reduce n entries to the n_wanted <= n best by exact score, ties broken by key. Their scores become the exact ones, in
 * units and rounded down, which are valid approximations too. Returns the worst exact score kept. */
static float select_exactly(struct shortlists *s, size_t i, struct scan_entry *entries, size_t n, size_t n_wanted)
{
  s->exact(s->exact_context, i, entries, n, s->scores);
  for (size_t e = 0; e < n; e++)
    s->exact_of[e] = (struct scan_entry){ ordered_of(s->scores[e]), entries[e].slot };
  int32_t worst = select_best(s, s->exact_of, n, n_wanted);
  size_t n_above = partition_ge(s, s->exact_of, n, worst + 1), n_rest = n - n_above;
  select_by_key(s, s->exact_of + n_above, partition_ge(s, s->exact_of + n_above, n_rest, worst), n_wanted - n_above);
  for (size_t e = 0; e < n_wanted; e++) {
    double score = floor((double)float_of(s->exact_of[e].score) * s->scales[i].units);
    entries[e] = (struct scan_entry){ (int32_t)score, s->exact_of[e].slot };
  }
  return float_of(worst);
}

/* Reduce a list of N or more admitted entries to exactly its N best so far. Returns the N-th best exact score.
 *
 * Let T be the N-th best approximate score. Fewer than N approximate scores are above T. An item with an approximate
 * score above T + 2 slack has a higher exact score than any item with an approximate score of T or less. So it is among
 * the N best, and it is not the N-th. An item below T - 2 slack is not among the N best. Exact scores decide about the
 * items in between.
 */
static float settle(struct shortlists *s, size_t i)
{
  struct scan_list *list = &s->lists[i];
  const struct shortlist_scale *scale = &s->scales[i];
  int32_t nth = select_best(s, list->entries, list->n, s->n_best);
  size_t n_possible = partition_ge(s, list->entries, list->n, nth - 2 * scale->slack);
  size_t n_certain = partition_ge(s, list->entries, n_possible, nth + 2 * scale->slack + 1);

  float worst = select_exactly(s, i, list->entries + n_certain, n_possible - n_certain, s->n_best - n_certain);
  list->n = s->n_admitted[i] = (uint32_t)s->n_best;
  /* Below this threshold, the exact score is below the worst one kept. */
  raise_threshold(s, i, floor((double)worst * scale->units) - scale->slack);
  return worst;
}

/* Return a rank in a list that has seen only some of the slots. N of all slots are likely to reach the score at this
 * rank: fewer than `rank` of the N best lie among the slots seen, except in one case of ten thousand or less. Returns N
 * if nothing can be said. */
static size_t guess_rank(const struct shortlists *s)
{
  double expected = (double)s->n_best * (double)s->n_seen / (double)s->n_slots;
  double rank = expected + 4 * sqrt(expected) + 4;

  return s->is_guessing && s->n_seen >= GUESS_FROM && rank < (double)s->n_best ? (size_t)rank : s->n_best;
}

/* Return the number of entries at which to look at a list again: when it has grown enough for that to pay, and before
 * it is full. */
static uint32_t next_limit(const struct shortlists *s, size_t n, size_t rank)
{
  size_t limit = 2 * (n > rank ? n : rank) + GUESS_ENTRIES;

  return (uint32_t)(rank < s->n_best && limit < s->n_usual ? limit : s->n_usual);
}

static void make_room(struct shortlists *s, size_t i, size_t rank)
{
  struct scan_list *list = &s->lists[i];
  int32_t slack = s->scales[i].slack;

  drop_not_admitted(s, i);
  s->limits[i] = next_limit(s, list->n, rank);
  if (list->n <= rank)
    return;
  int32_t threshold = select_best(s, list->entries, list->n, rank) - 2 * slack;
  list->n = s->n_admitted[i] = (uint32_t)partition_ge(s, list->entries, list->n, threshold);
  if (rank < s->n_best && threshold > s->guesses[i])
    s->guesses[i] = threshold;
  raise_threshold(s, i, threshold);
  s->limits[i] = next_limit(s, list->n, rank);
  if (list->n > s->n_best && list->n > s->n_usual / 4 * 3)
    settle(s, i);
}

void shortlist_make_room(struct shortlists *s, size_t n_scanned, size_t n_appended)
{
  s->n_seen += n_scanned;
  s->n_unseen += n_appended;
  if (s->n_unseen <= SHORTLIST_CHUNK)
    return; /* even if all are in one list, it has room for another chunk */
  s->n_unseen = 0;
  size_t rank = guess_rank(s);
  for (size_t i = 0; i < s->n_lists; i++) {
    if (s->lists[i].n > s->limits[i])
      make_room(s, i, rank);
  }
}

bool shortlist_is_complete(struct shortlists *s, size_t i)
{
  const struct scan_list *list = &s->lists[i];
  size_t n = 0;

  if (s->guesses[i] == NO_GUESS)
    return true;
  drop_not_admitted(s, i);
  for (uint32_t e = 0; e < list->n; e++)
    n += list->entries[e].score >= s->guesses[i] + 2 * s->scales[i].slack;
  return n >= s->n_best;
}

float shortlist_finish(struct shortlists *s, size_t list)
{
  drop_not_admitted(s, list);
  return s->lists[list].n < s->n_best ? -INFINITY : settle(s, list);
}
