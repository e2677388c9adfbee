/* SPDX-License-Identifier: Apache-2.0 */
/* MoL columns in host memory. */
#ifndef ENGINE_MOL_MOL_COLUMNS_H
#define ENGINE_MOL_MOL_COLUMNS_H

#include <assert.h>

#include "engine/columns.h"
#include "engine/mol/mol_model.h"

struct mol_columns {
  struct columns base;
  const struct mol_model *model;
  size_t capacity;
  float *components; /* [capacity][P_x d_P], normalised */
  float *gates;      /* [capacity][L] */
  float *averages;   /* [capacity][d_P] */
  float residual;    /* the largest of all items that were ever put (mol_sketch.h) */
  /* In blocks of SKETCH_BLOCK_ITEMS slots, in the orders that mol_lists() and average_lists() read. */
  uint8_t *sketches;       /* [blocks][P_x][ceil(d_P / 4)][SKETCH_BLOCK_ITEMS][4] */
  int16_t *short_averages; /* [blocks][ceil(d_P / 2)][SKETCH_BLOCK_ITEMS][2] */
};

/* Bytes of one block of sketches. */
static inline size_t mol_sketch_block_bytes(const struct mol_columns *c)
{
  return mol_item_layout(c->model).sketch * SKETCH_BLOCK_ITEMS;
}

static inline const struct mol_columns *mol_columns_of(const struct columns *columns)
{
  assert(columns->ops == &mol_columns_cpu);
  return (const struct mol_columns *)columns;
}

/* Scratch of scoring MOL_LANES items at a time. */
struct mol_tile {
  float *components; /* [P_x d_P][MOL_LANES] */
  float *gates;      /* [L][MOL_LANES] */
  float *scratch;
  const float **lines; /* of the tile that comes next */
  float scores[MOL_LANES];
  float lower[MOL_LANES], upper[MOL_LANES];
};

/* n floats, aligned to a whole vector, which a region does not promise. */
err_t mol_tile_array(struct region *region, size_t n, float **out);

err_t mol_tile_init(const struct mol_columns *c, struct region *region, struct mol_tile *out);

/* Transpose the items of n <= MOL_LANES slots into the tile. */
void mol_tile_load(const struct mol_columns *c, const struct kernels *kernels, const uint32_t *slots, size_t n,
                   struct mol_tile *tile);

/* Offer the scores of the tile's n items, of slots first and on, to a query's heap. */
void mol_tile_offer(const struct mol_tile *tile, const struct kernels *kernels, uint32_t first, size_t n,
                    float threshold, struct search_result *result);

/* Slots that will be loaded next, as mol_tile_score() takes them; n <= MOL_LANES. Good until the next call. */
struct mol_prefetch mol_tile_ahead(const struct mol_columns *c, const uint32_t *slots, size_t n, struct mol_tile *tile);

/* tile->scores = phi(query, items of the tile), exactly, in f32.
 * ahead  NULL: nothing is known of what comes next */
void mol_tile_score(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead);

/* tile->lower and tile->upper = numbers between which the items' scores lie, for less time; where this level and model
 * have that. */
bool mol_tile_can_bound(const struct mol_columns *c, const struct kernels *kernels);
void mol_tile_bound(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead);

#endif
