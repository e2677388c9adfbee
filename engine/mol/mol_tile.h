/* SPDX-License-Identifier: Apache-2.0 */
/* A tile: MOL_LANES items, transposed so that each SIMD lane holds one item. The kernels score one tile for one query
 * at a time.
 *
 * A tile is scratch memory that is loaded from the columns. A block is a group of slots that the columns store
 * interleaved. A chunk is a run of consecutive slots that a search handles in one step.
 */
#ifndef ENGINE_MOL_MOL_TILE_H
#define ENGINE_MOL_MOL_TILE_H

#include "engine/mol/mol_columns.h"
#include "engine/search/search_batch.h"

/* Queries that make up for gathering or loading the items of a tile. */
enum { MOL_SHARING_MIN = 4 };

/* One tile, its results, and scratch memory. */
struct mol_tile {
  float *components; /* [P_x d_P][MOL_LANES] */
  float *gates;      /* [L][MOL_LANES] */
  float *scratch;
  const float **lines; /* cache lines of the next tile, to be prefetched */
  float scores[MOL_LANES];
  float lower[MOL_LANES], upper[MOL_LANES];
};

/* Allocate a tile from the region. Returns ERR_MEMORY. */
err_t mol_tile_init(const struct mol_columns *c, struct region *region, struct mol_tile *out);

/* Load the items of n <= MOL_LANES slots into the tile. */
void mol_tile_load(const struct mol_columns *c, const struct kernels *kernels, const uint32_t *slots, size_t n,
                   struct mol_tile *tile);

/* Offer the scores of the tile's n items to a query's heap. slots [n]. */
void mol_tile_offer(const struct mol_tile *tile, const struct kernels *kernels, const uint32_t *slots, size_t n,
                    float threshold, struct search_result *result);

/* List the cache lines of n <= MOL_LANES slots that will be loaded next, for mol_tile_score() to prefetch. Valid until
 * the next call. */
struct mol_prefetch mol_tile_prefetch(const struct mol_columns *c, const uint32_t *slots, size_t n,
                                      struct mol_tile *tile);

/* Compute tile->scores = phi(query, items of the tile), in f32.
 *
 * ahead  what to prefetch; NULL: nothing
 */
void mol_tile_score(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead);

/* Can this machine screen items of this model? That takes less time than bounding their scores. */
bool mol_tile_can_screen(const struct mol_columns *c, const struct kernels *kernels);

/* Can this machine bound the scores of this model? Bounding takes less time than scoring. */
bool mol_tile_can_bound(const struct mol_columns *c, const struct kernels *kernels);

/* Compute bounds: each item's score lies between tile->lower and tile->upper. Only if mol_tile_can_bound(). */
void mol_tile_bound(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead);

#endif
