/* MoL columns in host memory. */
#ifndef ENGINE_MOL_COLUMNS_H
#define ENGINE_MOL_COLUMNS_H

#include "engine/columns.h"
#include "engine/mol_model.h"

struct mol_columns {
  const struct mol_model *model;
  size_t capacity;
  float *components; /* [capacity][P_x d_P], normalised */
  float *gates;      /* [capacity][L] */
  float *averages;   /* [capacity / DOT_BLOCK_ITEMS][d_P][DOT_BLOCK_ITEMS]: the order that dot_blocks() reads */
};

/* The methods: mol_brute_force.c and mol_average.c. */
err_t mol_search_brute_force(const struct mol_columns *c, struct search_batch *batch);
err_t mol_search_average(const struct mol_columns *c, struct search_batch *batch);

/* Scratch of scoring MOL_LANES items at a time. */
struct mol_tile {
  float *components; /* [P_x d_P][MOL_LANES] */
  float *gates;      /* [L][MOL_LANES] */
  float *scratch;
  float scores[MOL_LANES];
};

err_t mol_tile_init(const struct mol_columns *c, struct region *region, struct mol_tile *out);

/* Transpose the items of n <= MOL_LANES slots into the tile. */
void mol_tile_load(const struct mol_columns *c, const struct kernels *kernels, const uint32_t *slots, size_t n,
                   struct mol_tile *tile);

/* tile->scores = phi(query, items of the tile), exactly, in f32. */
void mol_tile_score(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile);

#endif
