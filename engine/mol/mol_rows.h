/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches of consecutive slots as rows. The columns interleave the sketches of a block, so that a query can be
 * compared with whole blocks. From rows, tiles of any slots are made at the cost of these slots alone. */
#ifndef ENGINE_MOL_MOL_ROWS_H
#define ENGINE_MOL_MOL_ROWS_H

#include "engine/mol/mol_columns.h"

enum { MOL_ROWS_SLOTS = 512 }; /* of Books: 128 KiB, a part of the second-level cache */

/* A word is four bytes of a sketch. Words are copied as floats, bit by bit. */
struct mol_rows {
  const struct kernels *kernels;
  size_t n_words; /* of an item */
  float *rows;    /* [ceil(n_words / MOL_LANES)][MOL_ROWS_SLOTS][MOL_LANES] */
  float *tile;    /* [ceil(n_words / MOL_LANES) * MOL_LANES][MOL_LANES] */
};

/* Returns ERR_MEMORY. */
err_t mol_rows_init(const struct mol_columns *c, const struct kernels *kernels, struct region *region,
                    struct mol_rows *out);

/* Load the sketches of n <= MOL_ROWS_SLOTS slots. first: a multiple of SKETCH_BLOCK_ITEMS. */
void mol_rows_load(struct mol_rows *r, const struct mol_columns *c, size_t first, size_t n);

/* Make a tile of n <= MOL_LANES of the loaded slots, at[i] after the first, for mol_any_tile(). Valid until the next
 * call. */
const uint8_t *mol_rows_tile(struct mol_rows *r, const uint16_t *at, size_t n);

#endif
