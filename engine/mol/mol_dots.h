/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of one vector with the vectors of scattered slots, in f32. They decide which items are candidates when
 * sketches leave it open. */
#ifndef ENGINE_MOL_MOL_DOTS_H
#define ENGINE_MOL_MOL_DOTS_H

#include "engine/mol/mol_columns.h"

/* One vector and the rows to multiply it with. */
struct mol_dots {
  const struct kernels *kernels;
  const float *vector; /* [dim] */
  size_t dim;
  const float *rows; /* the row of slot s is at rows + s * stride */
  size_t stride;
  float *tile; /* [dim][MOL_LANES], aligned to 64 */
};

/* scores[i] = sum of vector[k] * row[k] with fused multiply-adds, k rising. This is the dot product that mol_score()
 * computes. */
void mol_dots(const struct mol_dots *d, const struct scan_entry *entries, size_t n, float *scores);

#endif
