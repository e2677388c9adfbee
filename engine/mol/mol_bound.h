/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores. phi is a convex combination of logits (MoL paper, section 3.1), so no item scores
 * above its largest logit. The functions add the rounding errors of f32 to that bound. */
#ifndef ENGINE_MOL_MOL_BOUND_H
#define ENGINE_MOL_MOL_BOUND_H

#include "engine/mol/mol_model.h"

/* Return an upper bound on the score that mol_score() computes for an item whose L dot products, in f32, are all at
 * most `dot`. If dot is infinity, nothing is known of the item: return the highest score that any item could have. */
float mol_bound_score_from_dot(const struct mol_shape *shape, const struct mol_query *query, float dot);

/* Return a dot product with this property: an item whose dot products, in f32, are all below it scores below `score`.
 */
double mol_bound_dot_from_score(const struct mol_shape *shape, const struct mol_query *query, float score);

#endif
