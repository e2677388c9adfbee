/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of mol_bound.h and the proof that rounding does not break them. */
#include "engine/mol/mol_bound.h"

#include <math.h>

/* What a sum of n products in f32 may lose where they are too small for normal numbers. */
static double lost_below(double n)
{
  return n * 0x1p-149;
}

/* Upper bound on every logit of the query: |f| |g| / tau with |g| <= 1, plus the rounding of the norms and of the dot
 * product. */
static double largest_logit(const struct mol_shape *shape, const struct mol_query *query)
{
  double n = (double)(shape->component_dim + 8), rounding = 1 + n * 0x1p-23;

  return (double)shape->inv_temperature * ((double)query->max_norm * rounding + lost_below(n));
}

/* By how much may the computed score exceed the largest logit?
 *
 * Let e_p >= 0 be the computed weights before they are divided by their sum. mol_score() returns num / den, where num
 * is the sum of e_p l_p and den is the sum of e_p, each over L terms in f32. Each sum is off by at most L 2^-24 times
 * the sum of the absolute values of its terms, to first order. The quotient is off by 2^-24. Since sum e_p |l_p| <=
 * (largest |l|) sum e_p, the total is at most (2 L + 1) 2^-24 times the largest |l|. Two more terms cover the second
 * order and the rounding of one logit.
 *
 * Numbers too small to be normal lose up to 2^-150 a product instead. The largest e_p is 1, so that den is at least 1,
 * and the quotient loses no more than num did, and 2^-150 of its own.
 */
static double score_slack(const struct mol_shape *shape, const struct mol_query *query)
{
  double n_logits = (double)(shape->n_query_components * shape->n_item_components);

  return (n_logits + 4) * 0x1p-23 * (1 + n_logits * 0x1p-22) * largest_logit(shape, query) + lost_below(n_logits + 4);
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
