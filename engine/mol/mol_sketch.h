/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches: components and averaged vectors as integers, with a bound on the error of their dot products.
 *
 * A component g of an item, |g| <= 1, is kept as bytes with one scale for all items: g8 = bytes / 127. A component f of
 * a query is kept as bytes with a scale of its own: f8. By Cauchy-Schwarz:
 *
 *   |<f, g> - <f8, g8>| = |<f - f8, g> + <f8, g - g8>| <= |f - f8| |g| + |f8| |g - g8|
 *
 * The query's residual |f - f8| is known. For |g - g8| the columns keep the largest value over all items that were ever
 * put; it only grows. Averaged vectors are kept in 16 bits in the same way, with the largest residual that rounding can
 * leave. The slack also covers that the exact dot product is itself rounded to f32.
 */
#ifndef ENGINE_MOL_MOL_SKETCH_H
#define ENGINE_MOL_MOL_SKETCH_H

#include "engine/mol/mol_model.h"
#include "engine/search/shortlist.h"

/* Fill an item's sketch, short_average and residual (in units of 1/127) from its components and average. */
void mol_sketch_item(const struct mol_shape *shape, struct mol_item *item);

/* A query's components as bytes. */
struct mol_query_sketch {
  struct sketch_rows rows;
  struct shortlist_scale *scales; /* [P_q]; the caller sets .admit */
};

/* Convert a query's components to bytes. residual: the largest residual of the items, in units of 1/127. Returns
 * ERR_MEMORY. */
err_t mol_sketch_query(const struct mol_shape *shape, const float *components, float residual, struct region *region,
                       struct mol_query_sketch *out);

/* Compute start values for mol_any() with which every item that has a dot product of `dot` or more passes. starts [P_q]
 */
void mol_sketch_starts(const struct mol_query_sketch *sketch, double dot, int32_t *starts);

/* Compute the averaged vectors of n queries in 16 bits, in the layout of average_lists(), and their scales.
 *
 * rows    [ceil(d / 2)][n][2]
 * scales  [n]; the caller sets .admit
 */
err_t mol_sketch_averages(const struct mol_shape *shape, const struct mol_query *queries, size_t n,
                          struct region *region, int16_t **rows, struct shortlist_scale **scales);

#endif
