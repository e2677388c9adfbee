/* SPDX-License-Identifier: Apache-2.0 */
/* Scores scattered items tile by tile, bounding them first where that is cheaper. */
#include "engine/mol/mol_scorer.h"

#include <math.h>

enum {
  DEFERRED_MIN = 1024,
  DEFERRED_PER_HIT = 4,
  BOUNDED_QUARTERS = 3,  /* bounds pay if they keep at most so many quarters of the items, */
  SCREENED_QUARTERS = 1, /* and screens */
};

err_t mol_scorer_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                      struct mol_scorer *out)
{
  size_t k = batch->results[q].topk.k;

  *out = (struct mol_scorer){ .columns = c,
                              .kernels = batch->kernels,
                              .query = mol_queries_of(batch->prepared) + q,
                              .tile = tile,
                              .result = &batch->results[q],
                              .floor = batch->results[q].floor };
  if (!mol_tile_can_bound(c, batch->kernels))
    return ERR_OK;
  out->n_deferred_max = k * DEFERRED_PER_HIT > DEFERRED_MIN ? k * DEFERRED_PER_HIT : DEFERRED_MIN;
  TRY(region_array(batch->scratch, out->n_deferred_max, sizeof *out->deferred, &out->deferred));
  return kth_best_init(k, batch->scratch, &out->lowers);
}

float mol_scorer_threshold(const struct mol_scorer *s)
{
  float known = s->n_deferred_max ? fmaxf(s->lowers.threshold, s->floor) : s->floor;

  return fmaxf(topk_threshold(&s->result->topk), known);
}

/* Score n <= MOL_LANES items and prefetch the items of `ahead`. Bounds in the tile stay unchanged. */
static void score_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_prefetch *ahead)
{
  mol_tile_load(s->columns, s->kernels, slots, n, s->tile);
  mol_tile_score(s->columns, s->kernels, s->query, s->tile, ahead);
  for (size_t i = 0; i < n; i++) {
    if (s->tile->scores[i] >= mol_scorer_threshold(s))
      topk_push(&s->result->topk, s->tile->scores[i], slots[i]);
  }
  s->n_scored += n;
}

/* Drop the deferred items that can no longer enter the top K. */
static void drop_hopeless(struct mol_scorer *s)
{
  float threshold = mol_scorer_threshold(s);
  size_t n = 0;

  for (size_t i = 0; i < s->n_deferred; i++) {
    if (s->deferred[i].upper >= threshold)
      s->deferred[n++] = s->deferred[i];
  }
  s->n_deferred = n;
}

static size_t copy_slots(const struct mol_deferred *deferred, size_t n, uint32_t *slots)
{
  n = n < MOL_LANES ? n : MOL_LANES;
  for (size_t i = 0; i < n; i++)
    slots[i] = deferred[i].slot;
  return n;
}

static void score_deferred(struct mol_scorer *s)
{
  uint32_t slots[2][MOL_LANES];
  size_t n = copy_slots(s->deferred, s->n_deferred, slots[0]), at = n, turn = 0;

  while (n > 0) {
    size_t n_next = copy_slots(s->deferred + at, s->n_deferred - at, slots[1 - turn]);
    struct mol_prefetch ahead = mol_tile_prefetch(s->columns, slots[1 - turn], n_next, s->tile);
    score_tile(s, slots[turn], n, &ahead);
    turn = 1 - turn;
    n = n_next;
    at += n_next;
  }
  s->n_deferred = 0;
}

static void defer(struct mol_scorer *s, uint32_t slot, float upper)
{
  if (s->n_deferred == s->n_deferred_max) {
    drop_hopeless(s);
    if (s->n_deferred > s->n_deferred_max / 2)
      score_deferred(s);
  }
  s->deferred[s->n_deferred++] = (struct mol_deferred){ slot, upper };
  s->bounds.n_kept++;
}

bool mol_scorer_choose_bounds(struct mol_scorer *s, size_t n_items)
{
  return s->n_deferred_max > 0 && mol_trial_choose(&s->bounds, n_items, BOUNDED_QUARTERS);
}

/* Keep the bounds of an item. The caller has checked that the upper bound reaches the threshold; below it, the score
 * could not reach the threshold either. */
static void add_bounds(struct mol_scorer *s, uint32_t slot, float lower, float upper)
{
  kth_best_add_bound(&s->lowers, lower, s->lowers.k / 16 + 1);
  defer(s, slot, upper);
}

void mol_scorer_add_bounded(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_tile *tile)
{
  uint32_t reached[MOL_LANES];
  size_t n_reached = s->kernels->filter_ge(tile->upper, n, mol_scorer_threshold(s), reached);

  for (size_t i = 0; i < n_reached; i++) {
    uint32_t slot = slots[reached[i]];
    if (admit_slot(&s->result->admit, slot))
      add_bounds(s, slot, tile->lower[reached[i]], tile->upper[reached[i]]);
  }
}

static void bound_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_prefetch *ahead)
{
  const struct mol_tile *tile = s->tile;
  uint32_t reached[MOL_LANES];
  size_t n_reached;

  mol_tile_load(s->columns, s->kernels, slots, n, s->tile);
  mol_tile_bound(s->columns, s->kernels, s->query, s->tile, ahead);
  n_reached = s->kernels->filter_ge(tile->upper, n, mol_scorer_threshold(s), reached);
  for (size_t i = 0; i < n_reached; i++)
    add_bounds(s, slots[reached[i]], tile->lower[reached[i]], tile->upper[reached[i]]);
}

/* Bound or score a tile. */
static void finish_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_prefetch *ahead)
{
  if (mol_scorer_choose_bounds(s, n))
    bound_tile(s, slots, n, ahead);
  else
    score_tile(s, slots, n, ahead);
}

static void finish_passed(struct mol_scorer *s)
{
  size_t n = s->n_passed;

  s->n_passed = 0;
  if (n > 0)
    finish_tile(s, s->passed, n, NULL);
}

static void add_passed(struct mol_scorer *s, const uint32_t *slots, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    s->passed[s->n_passed++] = slots[i];
    if (s->n_passed == MOL_LANES)
      finish_passed(s);
  }
}

bool mol_scorer_choose_screen(struct mol_scorer *s, size_t n_items)
{
  return s->screening && mol_scorer_threshold(s) > -INFINITY &&
         mol_trial_choose(&s->screening->trial, n_items, SCREENED_QUARTERS);
}

void mol_scorer_screen(struct mol_scorer *s, const uint32_t *slots, size_t n, const uint32_t *words, const float *gates)
{
  uint32_t passed[MOL_LANES];

  add_passed(s, passed, mol_screening_add(s->screening, slots, n, words, gates, mol_scorer_threshold(s), passed));
}

static void screen_waiting(struct mol_scorer *s)
{
  uint32_t passed[MOL_LANES];

  add_passed(s, passed, mol_screening_next(s->screening, mol_scorer_threshold(s), passed));
}

static void screen_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_prefetch *ahead)
{
  mol_tile_load(s->columns, s->kernels, slots, n, s->tile);
  for (size_t i = 0; i < ahead->n; i++)
    __builtin_prefetch(ahead->lines[i], 0, 2);
  s->kernels->mol_screen_items(&s->columns->model->shape, s->tile->components, s->screening->words);
  mol_scorer_screen(s, slots, n, s->screening->words, s->tile->gates);
}

static void search_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_prefetch *ahead)
{
  if (mol_scorer_choose_screen(s, n))
    screen_tile(s, slots, n, ahead);
  else
    finish_tile(s, slots, n, ahead);
}

/* Score the waiting tile. The tile that was gathered becomes the waiting one. */
static void advance(struct mol_scorer *s)
{
  if (s->n_waiting > 0) {
    struct mol_prefetch ahead = mol_tile_prefetch(s->columns, s->slots, s->n, s->tile);
    search_tile(s, s->waiting, s->n_waiting, &ahead);
  }
  memcpy(s->waiting, s->slots, s->n * sizeof s->slots[0]);
  s->n_waiting = s->n;
  s->n = 0;
}

static void prefetch_item(struct mol_scorer *s, uint32_t slot)
{
  struct mol_prefetch lines = mol_tile_prefetch(s->columns, &slot, 1, s->tile);

  for (size_t i = 0; i < lines.n; i++)
    __builtin_prefetch(lines.lines[i], 0, 2);
}

/* Score the gathered tile. */
static void finish_gathered(struct mol_scorer *s)
{
  const struct mol_prefetch nothing = { 0 };
  size_t n = s->n;

  s->n = 0;
  search_tile(s, s->slots, n, &nothing);
}

void mol_scorer_flush(struct mol_scorer *s)
{
  advance(s);
  advance(s);
  while (s->screening && s->screening->n > 0)
    screen_waiting(s);
  finish_passed(s);
  if (s->n_deferred_max)
    kth_best_cut(&s->lowers);
  drop_hopeless(s);
  score_deferred(s);
}

void mol_scorer_forget(struct mol_scorer *s)
{
  struct topk *topk = &s->result->topk;

  s->floor = mol_scorer_threshold(s);
  topk_init(topk, topk->heap, topk->k, topk->order, topk->context);
  if (s->n_deferred_max)
    kth_best_restart(&s->lowers, s->lowers.k);
}

void mol_scorer_add(struct mol_scorer *s, uint32_t slot)
{
  s->n_added++;
  s->slots[s->n++] = slot;
  if (s->prefetches_each)
    prefetch_item(s, slot);
  if (s->n == MOL_LANES && s->prefetches_each)
    finish_gathered(s);
  else if (s->n == MOL_LANES)
    advance(s);
}

void mol_scorer_add_set(struct mol_scorer *s, const uint64_t *set, size_t n_words)
{
  for (size_t w = 0; w < n_words; w++) {
    for (uint64_t bits = set[w]; bits; bits &= bits - 1)
      mol_scorer_add(s, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits));
  }
  mol_scorer_flush(s);
}
