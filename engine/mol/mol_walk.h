/* SPDX-License-Identifier: Apache-2.0 */
/* The slots that a batch visits: all of them, or a list of those that some query admits, where that is faster. */
#ifndef ENGINE_MOL_MOL_WALK_H
#define ENGINE_MOL_MOL_WALK_H

#include "engine/mol/mol_columns.h"
#include "engine/search/search_batch.h"

struct mol_walk {
  const uint32_t *slots; /* [n], rising; NULL: 0..n-1 */
  size_t n;
};

/* Choose the slots to visit. The list lives in the batch's scratch memory. Returns ERR_MEMORY. */
err_t mol_walk_init(const struct mol_columns *c, const struct search_batch *batch, struct mol_walk *out);

/* Write the slots `first`.. of the walk, at most `most`. Returns their number. */
size_t mol_walk_slots(const struct mol_walk *walk, size_t first, size_t most, uint32_t *slots);

#endif
