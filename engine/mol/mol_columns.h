/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits columns in host memory. */
#ifndef ENGINE_MOL_MOL_COLUMNS_H
#define ENGINE_MOL_MOL_COLUMNS_H

#include <assert.h>

#include "engine/mol/mol_model.h"
#include "engine/similarity/columns.h"

struct mol_columns {
  struct columns base;
  const struct mol_model *model;
  size_t capacity;
  float *components; /* [capacity][P_x d_P], normalised */
  float *gates;      /* [capacity][L] */
  float *averages;   /* [capacity][d_P] */
  float residual;    /* the largest residual of all items that were ever put (mol_sketch.h) */
  /* In blocks of SKETCH_BLOCK_ITEMS slots, in the layouts that mol_lists() and average_lists() read. */
  uint8_t *sketches;       /* [blocks][P_x][ceil(d_P / 4)][SKETCH_BLOCK_ITEMS][4] */
  int16_t *short_averages; /* [blocks][ceil(d_P / 2)][SKETCH_BLOCK_ITEMS][2] */
};

/* The bytes of one block of sketches. */
static inline size_t mol_sketch_block_bytes(const struct mol_columns *c)
{
  return mol_item_layout(c->model).sketch * SKETCH_BLOCK_ITEMS;
}

/* The block of sketches that begins with slot `first`, a multiple of SKETCH_BLOCK_ITEMS. */
static inline const uint8_t *mol_sketch_block_at(const struct mol_columns *c, size_t first)
{
  return c->sketches + first / SKETCH_BLOCK_ITEMS * mol_sketch_block_bytes(c);
}

/* Cast columns that mol_columns_cpu has opened. */
static inline const struct mol_columns *mol_columns_of(const struct columns *columns)
{
  assert(columns->ops == &mol_columns_cpu);
  return (const struct mol_columns *)columns;
}

#endif
