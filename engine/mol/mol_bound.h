/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of Mixture-of-Logits scores: phi is a convex combination of logits (MoL paper, section 3.1), so no item scores
 * above its largest logit; and what rounding in f32 adds to that. */
#ifndef ENGINE_MOL_MOL_BOUND_H
#define ENGINE_MOL_MOL_BOUND_H

#include "engine/mol/mol_model.h"

/* An upper bound on the score, as mol_score() computes it, of an item none of whose L dot products, in f32, exceeds
 * `dot`. Infinity stands for no knowledge: then the bound is what any item could score. */
float mol_bound_score_from_dot(const struct mol_shape *shape, const struct mol_query *query, float dot);

/* A dot product such that an item all of whose dot products are below it, in f32, scores below `score`. */
double mol_bound_dot_from_score(const struct mol_shape *shape, const struct mol_query *query, float score);

#endif
