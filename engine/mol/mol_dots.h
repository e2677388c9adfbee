/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of one vector with vectors of scattered slots, in f32: those that decide which items are candidates. */
#ifndef ENGINE_MOL_MOL_DOTS_H
#define ENGINE_MOL_MOL_DOTS_H

#include "engine/mol/mol_columns.h"

/* One vector and the rows that it meets. */
struct mol_dots {
  const struct kernels *kernels;
  const float *vector; /* [dim] */
  size_t dim;
  const float *rows; /* row of slot s at rows + s * stride */
  size_t stride;
  float *tile; /* [dim][MOL_LANES], aligned to 64 */
};

/* scores[i] = sum over k, rising, of vector[k] * row[k], fused: the dot product of mol_score(). */
void mol_dots(const struct mol_dots *d, const struct scan_entry *entries, size_t n, float *scores);

#endif
