/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mol/mol_scorer.h"

#include <math.h>

enum {
  LATE_MIN = 1024,
  LATE_PER_HIT = 4,
  STRETCH = 1024,        /* items after which it is seen whether bounds pay */
  STRETCHES_WITHOUT = 7, /* where they do not */
};

err_t slot_set_init(size_t n_slots, struct region *region, struct slot_set *out)
{
  out->n_words = (n_slots + 63) / 64;
  return region_array(region, out->n_words, sizeof *out->words, &out->words);
}

err_t mol_scorer_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                      struct mol_scorer *out)
{
  size_t k = batch->results[q].topk.k;
  struct topk_entry *heap;

  *out = (struct mol_scorer){ .columns = c,
                              .kernels = batch->kernels,
                              .query = mol_queries_of(batch->prepared) + q,
                              .tile = tile,
                              .result = &batch->results[q],
                              .floor = -INFINITY };
  if (!mol_tile_can_bound(c, batch->kernels))
    return ERR_OK;
  out->n_late_max = k * LATE_PER_HIT > LATE_MIN ? k * LATE_PER_HIT : LATE_MIN;
  TRY(region_array(batch->scratch, out->n_late_max, sizeof *out->late, &out->late));
  TRY(region_array(batch->scratch, k, sizeof *heap, &heap));
  topk_init(&out->lowers, heap, k, topk_by_slot, NULL);
  return ERR_OK;
}

float mol_scorer_threshold(const struct mol_scorer *s)
{
  float known = s->n_late_max ? fmaxf(topk_threshold(&s->lowers), s->floor) : s->floor;

  return fmaxf(topk_threshold(&s->result->topk), known);
}

/* Score n <= MOL_LANES items, while the next ones come into cache. Bounds in the tile stay as they are. */
static void score_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_ahead *ahead)
{
  mol_tile_load(s->columns, s->kernels, slots, n, s->tile);
  mol_tile_score(s->columns, s->kernels, s->query, s->tile, ahead);
  for (size_t i = 0; i < n; i++) {
    if (s->tile->scores[i] >= mol_scorer_threshold(s))
      topk_push(&s->result->topk, s->tile->scores[i], slots[i]);
  }
  s->n_scored += n;
}

/* Drop what cannot enter any more. */
static void sift_late(struct mol_scorer *s)
{
  float threshold = mol_scorer_threshold(s);
  size_t n = 0;

  for (size_t i = 0; i < s->n_late; i++) {
    if (s->late[i].upper >= threshold)
      s->late[n++] = s->late[i];
  }
  s->n_late = n;
}

static size_t copy_slots(const struct mol_late *late, size_t n, uint32_t *slots)
{
  n = n < MOL_LANES ? n : MOL_LANES;
  for (size_t i = 0; i < n; i++)
    slots[i] = late[i].slot;
  return n;
}

static void score_late(struct mol_scorer *s)
{
  uint32_t slots[2][MOL_LANES];
  size_t n = copy_slots(s->late, s->n_late, slots[0]), at = n, turn = 0;

  while (n > 0) {
    size_t n_next = copy_slots(s->late + at, s->n_late - at, slots[1 - turn]);
    struct mol_ahead ahead = mol_tile_ahead(s->columns, slots[1 - turn], n_next, s->tile);
    score_tile(s, slots[turn], n, &ahead);
    turn = 1 - turn;
    n = n_next;
    at += n_next;
  }
  s->n_late = 0;
}

static void add_late(struct mol_scorer *s, uint32_t slot, float upper)
{
  if (s->n_late == s->n_late_max) {
    sift_late(s);
    if (s->n_late > s->n_late_max / 2)
      score_late(s);
  }
  s->late[s->n_late++] = (struct mol_late){ slot, upper };
  s->n_reached++;
}

bool mol_scorer_take_bounds(struct mol_scorer *s, size_t n_items)
{
  if (s->n_late_max == 0)
    return false;
  if (s->n_until_bounds > 0) {
    s->n_until_bounds -= n_items < s->n_until_bounds ? n_items : s->n_until_bounds;
    return false;
  }
  if (s->n_bounded >= STRETCH) {
    s->n_until_bounds = s->n_reached > s->n_bounded / 4 * 3 ? STRETCHES_WITHOUT * STRETCH : 0;
    s->n_bounded = s->n_reached = 0;
  }
  s->n_bounded += n_items;
  return true;
}

/* An item reaches the threshold if its score does: then its upper bound does. */
static void add_bounds(struct mol_scorer *s, uint32_t slot, float lower, float upper)
{
  if (lower >= topk_threshold(&s->lowers))
    topk_push(&s->lowers, lower, slot);
  add_late(s, slot, upper);
}

void mol_scorer_add_bounded(struct mol_scorer *s, uint32_t first, size_t n, const struct mol_tile *tile)
{
  uint32_t reached[MOL_LANES];
  size_t n_reached = s->kernels->filter_ge(tile->upper, n, mol_scorer_threshold(s), reached);

  for (size_t i = 0; i < n_reached; i++) {
    if (admit_slot(&s->result->admit, first + reached[i]))
      add_bounds(s, first + reached[i], tile->lower[reached[i]], tile->upper[reached[i]]);
  }
}

static void bound_tile(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_ahead *ahead)
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

/* Take on what waits; what was gathered waits now. */
static void turn(struct mol_scorer *s)
{
  if (s->n_waiting > 0) {
    struct mol_ahead ahead = mol_tile_ahead(s->columns, s->slots, s->n, s->tile);
    if (mol_scorer_take_bounds(s, s->n_waiting))
      bound_tile(s, s->waiting, s->n_waiting, &ahead);
    else
      score_tile(s, s->waiting, s->n_waiting, &ahead);
  }
  memcpy(s->waiting, s->slots, s->n * sizeof s->slots[0]);
  s->n_waiting = s->n;
  s->n = 0;
}

void mol_scorer_flush(struct mol_scorer *s)
{
  turn(s);
  turn(s);
  sift_late(s);
  score_late(s);
}

void mol_scorer_forget(struct mol_scorer *s)
{
  struct topk *topk = &s->result->topk;

  s->floor = mol_scorer_threshold(s);
  topk_init(topk, topk->heap, topk->k, topk->order, topk->context);
  if (s->n_late_max)
    topk_init(&s->lowers, s->lowers.heap, s->lowers.k, s->lowers.order, s->lowers.context);
}

void mol_scorer_add(struct mol_scorer *s, uint32_t slot)
{
  s->n_added++;
  s->slots[s->n++] = slot;
  if (s->n == MOL_LANES)
    turn(s);
}

void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set)
{
  for (size_t w = 0; w < set->n_words; w++) {
    for (uint64_t bits = set->words[w]; bits; bits &= bits - 1)
      mol_scorer_add(s, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits));
  }
  mol_scorer_flush(s);
}
