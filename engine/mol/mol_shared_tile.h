/* SPDX-License-Identifier: Apache-2.0 */
/* A tile that several queries look at: it is loaded once, and screened, bounded or scored for each of them. */
#ifndef ENGINE_MOL_MOL_SHARED_TILE_H
#define ENGINE_MOL_MOL_SHARED_TILE_H

#include "engine/mol/mol_scorer.h"
#include "engine/search/search_batch.h"

struct mol_shared_tile {
  struct mol_tile tile;
  uint32_t slots[MOL_LANES]; /* [n], set by the caller */
  size_t n;
  uint32_t *words; /* for mol_screen_logits(); NULL: this machine or model has no screens */
};

/* What a query does with a tile. */
enum mol_tile_use { MOL_TILE_SCREEN, MOL_TILE_BOUND, MOL_TILE_SCORE };

/* Returns ERR_MEMORY. */
err_t mol_shared_tile_init(const struct mol_columns *c, const struct search_batch *batch, struct mol_shared_tile *out);

/* Prefetch the items of the tile's slots. */
void mol_shared_tile_prefetch(const struct mol_columns *c, struct mol_shared_tile *t);

/* Load the items of the tile's slots. */
void mol_shared_tile_load(const struct mol_columns *c, const struct kernels *kernels, struct mol_shared_tile *t);

/* Add the items that the scorer's query admits. */
void mol_shared_tile_search(struct mol_shared_tile *t, struct mol_scorer *scorer, enum mol_tile_use use);

#endif
