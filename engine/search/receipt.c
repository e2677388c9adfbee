/* SPDX-License-Identifier: Apache-2.0 */
/* Computes receipts from a full heap and the bound on the items outside it. */
#include "engine/search/receipt.h"

#include <math.h>

/* No item that was skipped by a threshold scores higher. */
static float highest_outside(const struct search_result *result)
{
  return fmaxf(topk_threshold(&result->topk), result->min_score);
}

void receipt_exact(struct search_result *result, uint64_t n_items)
{
  bool is_all = result->topk.n == result->admit.n_admitted; /* with late keys, more than K items are admitted */

  result->counts.items = n_items;
  result->counts.has_admitted = !result->admit.late;
  result->counts.admitted = result->admit.n_admitted;
  /* A search may score an item twice: once to find a threshold, and again when the scan reaches it. It may also score
   * an item that is not admitted. */
  if (result->counts.scored > n_items)
    result->counts.scored = n_items;
  if (result->counts.candidates > n_items)
    result->counts.candidates = n_items;
  result->receipt = (struct receipt){
    .is_exact = true,
    .has_bound = !is_all,
    .bound = is_all ? 0.0f : highest_outside(result),
  };
}

void receipt_bounded(struct search_result *result, uint64_t n_items, uint64_t n_outside, float bound)
{
  float kth = topk_threshold(&result->topk);

  receipt_exact(result, n_items);
  if (n_outside == 0)
    return;
  /* With fewer than K hits kth is -inf: items that were not scored would be among the K best. */
  result->receipt.is_exact = kth >= bound;
  result->receipt.bound = fmaxf(kth, bound);
}
