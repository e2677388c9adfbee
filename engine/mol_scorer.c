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

void mol_scorer_flush(struct mol_scorer *s)
{
  if (s->n == 0)
    return;
  mol_tile_load(s->columns, s->kernels, s->slots, s->n, s->tile);
  mol_tile_score(s->columns, s->kernels, s->query, s->tile);
  for (size_t i = 0; i < s->n; i++) {
    if (s->tile->scores[i] >= mol_scorer_threshold(s))
      topk_push(s->topk, s->tile->scores[i], s->slots[i]);
  }
  s->n_scored += s->n;
  s->n = 0;
}

void mol_scorer_add(struct mol_scorer *s, uint32_t slot)
{
  s->slots[s->n++] = slot;
  if (s->n == MOL_LANES)
    mol_scorer_flush(s);
}

void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set)
{
  for (size_t w = 0; w < set->n_words; w++) {
    for (uint64_t bits = set->words[w]; bits; bits &= bits - 1)
      mol_scorer_add(s, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits));
  }
  mol_scorer_flush(s);
}
