/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mol/mol_bound.h"

#include <math.h>

/* What no logit of a query exceeds: |f| |g| / tau with |g| <= 1, and rounding of the norms. */
static double largest_logit(const struct mol_shape *shape, const struct mol_query *query)
{
  double rounding = 1 + (double)(shape->component_dim + 8) * 0x1p-23;

  return (double)shape->inv_temperature * (double)query->max_norm * rounding;
}

/* How far the computed score may exceed the largest logit.
 *
 * With e_p >= 0 the computed weights before they are divided by their sum, mol_score() returns num / den where num sums
 * e_p l_p and den sums e_p, over L terms in f32. Each sum is off by at most L 2^-24 of the sum of its absolute values
 * (to first order), the quotient by 2^-24, and sum e_p |l_p| <= (largest |l|) sum e_p: in all at most
 * (2 L + 1) 2^-24 times the largest |l|. Two terms more make up for the second order, and one logit's rounding. */
static double score_slack(const struct mol_shape *shape, const struct mol_query *query)
{
  double n_logits = (double)(shape->n_query_components * shape->n_item_components);

  return (n_logits + 4) * 0x1p-23 * (1 + n_logits * 0x1p-22) * largest_logit(shape, query);
}

float mol_bound_score_from_dot(const struct mol_shape *shape, const struct mol_query *query, float dot)
{
  double bound = fmin((double)dot * (double)shape->inv_temperature, largest_logit(shape, query));

  return nextafterf((float)(bound + score_slack(shape, query)), INFINITY);
}

double mol_bound_dot_from_score(const struct mol_shape *shape, const struct mol_query *query, float score)
{
  double dot = ((double)score - score_slack(shape, query)) / (double)shape->inv_temperature;

  return dot - fabs(dot) * 0x1p-50;
}
