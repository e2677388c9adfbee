#include "engine/mol_scorer.h"

#include <math.h>

err_t slot_set_init(size_t n_slots, struct region *region, struct slot_set *out)
{
  out->n_words = (n_slots + 63) / 64;
  return region_array(region, out->n_words, sizeof *out->words, &out->words);
}

float mol_scorer_threshold(const struct mol_scorer *s)
{
  return fmaxf(topk_threshold(s->topk), s->floor);
}

/* Score what waits; what was gathered waits now. */
static void score_waiting(struct mol_scorer *s)
{
  if (s->n_waiting > 0) {
    struct mol_ahead ahead = mol_tile_ahead(s->columns, s->slots, s->n, s->tile);
    mol_tile_load(s->columns, s->kernels, s->waiting, s->n_waiting, s->tile);
    mol_tile_score(s->columns, s->kernels, s->query, s->tile, &ahead);
  }
  for (size_t i = 0; i < s->n_waiting; i++) {
    if (s->tile->scores[i] >= mol_scorer_threshold(s))
      topk_push(s->topk, s->tile->scores[i], s->waiting[i]);
  }
  s->n_scored += s->n_waiting;
  memcpy(s->waiting, s->slots, s->n * sizeof s->slots[0]);
  s->n_waiting = s->n;
  s->n = 0;
}

void mol_scorer_flush(struct mol_scorer *s)
{
  score_waiting(s);
  score_waiting(s);
}

void mol_scorer_add(struct mol_scorer *s, uint32_t slot)
{
  s->slots[s->n++] = slot;
  if (s->n == MOL_LANES)
    score_waiting(s);
}

void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set)
{
  for (size_t w = 0; w < set->n_words; w++) {
    for (uint64_t bits = set->words[w]; bits; bits &= bits - 1)
      mol_scorer_add(s, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits));
  }
  mol_scorer_flush(s);
}
