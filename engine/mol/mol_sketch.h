/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches: components and averaged vectors in integers, and how far dot products of sketches may be off.
 *
 * A component g of an item, |g| <= 1, is kept as bytes with one scale for all, g8 = bytes / 127; a component f of a
 * query as bytes with a scale of its own, f8. Then |<f, g> - <f8, g8>| = |<f - f8, g> + <f8, g - g8>| <= |f - f8| |g| +
 * |f8| |g - g8| (Cauchy-Schwarz): the query's residual |f - f8| is known, and of |g - g8| the columns keep the largest
 * over all items that were ever put, which only grows. Averaged vectors are kept in 16 bits in the same way, with the
 * worst residual that rounding can leave. The slack also covers that the exact dot product is itself a rounded one, in
 * f32.
 */
#ifndef ENGINE_MOL_MOL_SKETCH_H
#define ENGINE_MOL_MOL_SKETCH_H

#include "engine/mol/mol_model.h"
#include "engine/shortlist.h"

/* Fill sketch, short_average and residual (in units of 1/127) of an item from its components and average. */
void mol_sketch_item(const struct mol_shape *shape, struct mol_item *item);

/* A query's components in bytes. */
struct mol_query_sketch {
  struct sketch_rows rows;
  struct shortlist_scale *scales; /* [P_q], whom they admit left open */
};

/* residual  the largest of the items, in units of 1/127 */
err_t mol_sketch_query(const struct mol_shape *shape, const float *components, float residual, struct region *region,
                       struct mol_query_sketch *out);

/* What mol_any() starts from so that no item is missed that has a dot product of `dot` or more. starts [P_q] */
void mol_sketch_starts(const struct mol_query_sketch *sketch, double dot, int32_t *starts);

/* The averaged vectors of n queries in 16 bits, as average_lists() takes them, and their scales.
 * rows [ceil(d / 2)][n][2]; scales [n], whom they admit left open */
err_t mol_sketch_averages(const struct mol_shape *shape, const struct mol_query *queries, size_t n,
                          struct region *region, int16_t **rows, struct shortlist_scale **scales);

#endif
