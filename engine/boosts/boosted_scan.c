/* SPDX-License-Identifier: Apache-2.0 */
/* Block by block: levels first, then the sums of the items that pass. */
#include "engine/boosts/boosted_scan.h"

#include <math.h>

#include "base/progress.h"
#include "base/size.h"
#include "engine/boosts/boost_levels.h"

enum {
  WAITING_MAX = 16,                 /* sums above the threshold until it rises */
  STEP_SLOTS = PQ_BLOCK_ITEMS * 64, /* until progress is noted, and another search may come between */
  NOTED_WORDS = 4096,
  LIMIT_LOW = BOOST_LEVEL_MAX * 3 / 4, /* below this the tables are made anew: they use a part of a byte only */
};

/* Return the similarity that an item needs which has the best boosts of those that do not pass in any case. */
static float least_similarity(const struct boosted_scan *s, double least)
{
  double best = s->similarity->best;

  return nextafterf((float)(best - boost_levels_range(s->bounds->levels, least)), -INFINITY);
}

/* Follow the threshold, by new tables if `is_anew`. */
static void lower_limit(struct boosted_scan *s, bool is_anew)
{
  struct boost_levels *levels = s->bounds->levels;
  double least = boosts_least(s->best.threshold, s->similarity->best);

  if (is_anew) {
    boost_levels_choose(levels, least);
    s->similarity->ops->quantise(s->similarity, least_similarity(s, least));
    boost_levels_quantise(levels, s->similarity->scale);
  }
  s->limit = s->similarity->ops->limit(s->similarity, least_similarity(s, least));
}

static float sum_of(const struct boosted_scan *s, uint32_t slot)
{
  return boosts_score(s->similarity->ops->score(s->similarity, slot), boosts_of_slot(s->bounds->boosts, slot));
}

/* Clear the bits of n words whose sums are below the threshold. is_new: the other sums may raise it. */
static void compare_sums(struct boosted_scan *s, size_t first_word, size_t n, bool is_new)
{
  for (size_t w = first_word; w < first_word + n; w++) {
    if (w % NOTED_WORDS == 0)
      progress_note();
    for (uint64_t rest = s->words[w]; rest; rest &= rest - 1) {
      uint32_t slot = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
      float sum = sum_of(s, slot);
      s->n_scored += is_new;
      if (sum < s->best.threshold)
        bits_clear(s->words, slot);
      else if (is_new)
        kth_best_add_bound(&s->best, sum, WAITING_MAX);
    }
  }
}

/* Look at the n slots from `first` on. n_slots: of all. */
static void scan_block(struct boosted_scan *s, size_t first, size_t n, size_t n_slots)
{
  const struct score_tables *t = s->similarity;
  const uint8_t *rows[PQ_TABLES_MAX], *next[PQ_TABLES_MAX];
  bool has_next = first + PQ_BLOCK_ITEMS < n_slots;
  const struct boost_tables others = { t->tables, rows, has_next ? next : NULL, t->n };

  t->ops->find_rows(t, first, rows);
  if (has_next)
    t->ops->find_rows(t, first + PQ_BLOCK_ITEMS, next);
  boost_levels_narrow(s->bounds->levels, &others, first, n, s->limit, s->words + first / 64);
  compare_sums(s, first / 64, bits_words(n), true);
  lower_limit(s, s->limit < LIMIT_LOW);
}

static void begin(struct boosted_scan *s)
{
  s->n_scored = 0;
  lower_limit(s, true);
}

/* The threshold has risen since most bits were left. */
static void end(struct boosted_scan *s, size_t n_slots)
{
  kth_best_cut(&s->best);
  compare_sums(s, 0, bits_words(n_slots), false);
  s->n_left = bits_count(s->words, bits_words(n_slots));
}

static void step(const struct search_pause *pause)
{
  progress_note();
  if (pause->call)
    pause->call(pause->context);
}

/* All queries scan a block in turn: its codes stay in cache. */
void boosted_scan_all(struct boosted_scan *const *scans, size_t n, const struct search_pause *pause)
{
  size_t n_slots = n > 0 ? scans[0]->bounds->boosts->arena->n_slots : 0;

  for (size_t q = 0; q < n; q++)
    begin(scans[q]);
  for (size_t first = 0; first < n_slots; first += PQ_BLOCK_ITEMS) {
    size_t n_items = size_min(PQ_BLOCK_ITEMS, n_slots - first);
    if (first % STEP_SLOTS == 0)
      step(pause);
    for (size_t q = 0; q < n; q++) {
      if (bits_count(scans[q]->words + first / 64, bits_words(n_items)) > 0)
        scan_block(scans[q], first, n_items, n_slots);
    }
  }
  for (size_t q = 0; q < n; q++)
    end(scans[q], n_slots);
}
