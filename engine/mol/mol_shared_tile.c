/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a tile for several queries, and lets each screen, bound or score it. */
#include "engine/mol/mol_shared_tile.h"

err_t mol_shared_tile_init(const struct mol_columns *c, const struct search_batch *batch, struct mol_shared_tile *out)
{
  out->words = NULL;
  TRY(mol_tile_init(c, batch->scratch, &out->tile));
  if (!mol_tile_can_screen(c, batch->kernels))
    return ERR_OK;
  return region_aligned(batch->scratch, mol_screen_words(&c->model->shape) * MOL_LANES, sizeof *out->words,
                        &out->words);
}

void mol_shared_tile_prefetch(const struct mol_columns *c, struct mol_shared_tile *t)
{
  struct mol_prefetch ahead = mol_tile_prefetch(c, t->slots, t->n, &t->tile);

  for (size_t i = 0; i < ahead.n; i++)
    __builtin_prefetch(ahead.lines[i], 0, 2);
}

void mol_shared_tile_load(const struct mol_columns *c, const struct kernels *kernels, struct mol_shared_tile *t)
{
  mol_tile_load(c, kernels, t->slots, t->n, &t->tile);
  if (t->words)
    kernels->mol_screen_items(&c->model->shape, t->tile.components, t->words);
}

static void bound_whole(struct mol_scorer *s, struct mol_shared_tile *t)
{
  mol_tile_bound(s->columns, s->kernels, s->query, &t->tile, NULL);
  mol_scorer_add_bounded(s, t->slots, t->n, &t->tile);
}

static void score_whole(struct mol_scorer *s, struct mol_shared_tile *t)
{
  mol_tile_score(s->columns, s->kernels, s->query, &t->tile, NULL);
  mol_tile_offer(&t->tile, s->kernels, t->slots, t->n, mol_scorer_threshold(s), s->result);
  s->n_scored += t->n;
}

void mol_shared_tile_search(struct mol_shared_tile *t, struct mol_scorer *scorer, enum mol_tile_use use)
{
  if (use == MOL_TILE_SCREEN)
    mol_scorer_screen(scorer, t->slots, t->n, t->words, t->tile.gates);
  else if (use == MOL_TILE_BOUND)
    bound_whole(scorer, t);
  else
    score_whole(scorer, t);
}
