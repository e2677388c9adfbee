/* SPDX-License-Identifier: Apache-2.0 */
/* The hits are in order: those that are too low are the last ones. */
#include "engine/min_score.h"

#include <math.h>

bool min_score_is_missed(const struct query *query, float score)
{
  return query->has_min_score && !(score >= query->min_score);
}

void min_score_cut(const struct query *query, struct answer *answer)
{
  struct receipt *receipt = &answer->receipt;
  size_t n = answer->n_hits;

  if (!query->has_min_score)
    return;
  while (n > 0 && min_score_is_missed(query, answer->hits[n - 1].score))
    n--;
  if (n < answer->n_hits) {
    float best = answer->hits[n].score;
    receipt->bound = receipt->has_bound ? fmaxf(receipt->bound, best) : best;
    receipt->has_bound = true;
  }
  answer->n_hits = n;
  if (receipt->has_bound && min_score_is_missed(query, receipt->bound))
    receipt->is_exact = true;
}
