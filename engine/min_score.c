/* SPDX-License-Identifier: Apache-2.0 */
/* The hits are in order: those that are too low are the last ones.
 *
 * A search may have found items that are too low, or skipped them: the receipt is the same. */
#include "engine/min_score.h"

#include <math.h>

bool min_score_is_missed(const struct query *query, float score)
{
  return query->has_min_score && !(score >= query->min_score);
}

void min_score_cut(const struct query *query, struct answer *answer)
{
  struct receipt *receipt = &answer->receipt;
  size_t n_found = answer->n_hits, n = n_found;

  if (!query->has_min_score)
    return;
  while (n > 0 && min_score_is_missed(query, answer->hits[n - 1].score))
    n--;
  answer->n_hits = n;
  if (n == query->k || (n == n_found && !receipt->has_bound))
    return; /* others are outside, or none */
  if (receipt->has_bound && min_score_is_missed(query, receipt->bound))
    receipt->is_exact = true;
  receipt->bound = receipt->has_bound ? fmaxf(receipt->bound, query->min_score) : query->min_score;
  receipt->has_bound = true;
}
