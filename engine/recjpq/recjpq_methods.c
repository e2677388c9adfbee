/* SPDX-License-Identifier: Apache-2.0 */
/* The table of RecJPQ methods (RecJPQPrune paper, sections 3 and 4). On a GPU the exhaustive scan is as fast as the
 * memory, so it serves every row: the pruned methods return what they would, the unsafe ones that or better. */
#include "engine/recjpq/recjpq_methods.h"

#include "engine/recjpq/recjpq_model.h"

#define BATCH_SIZE { .name = "BS", .max = PQ_SUBITEMS }

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
      .search = METHOD_SEARCHES(recjpq_search_exact, recjpq_cuda_search),
      .summary = "the K best, pruned over pairs of splits",
  },
  {
      .name = "pqtopk",
      .is_exact = true,
      .search = METHOD_SEARCHES(recjpq_search_pqtopk, recjpq_cuda_search),
      .summary = "the K best: every item, bounded by bytes first",
  },
  {
      .name = "default",
      .is_exact = true,
      .search = METHOD_SEARCHES(recjpq_search_default, recjpq_cuda_search),
      .summary = "the K best: every item's vector reconstructed, the paper's baseline",
  },
  {
      .name = "prune",
      .is_exact = true,
      .args = { BATCH_SIZE },
      .search = METHOD_SEARCHES(recjpq_search_prune, recjpq_cuda_search),
      .summary = "the K best, by RecJPQPrune, safe to rank K",
  },
  {
      .name = "prune_inflated",
      .args = { BATCH_SIZE, { .name = "PERCENT", .min = 100 } },
      .search = METHOD_SEARCHES(recjpq_search_prune_inflated, recjpq_cuda_search),
      .summary = "RecJPQPrune that stops at PERCENT of the threshold",
  },
  {
      .name = "prune_limited",
      .args = { BATCH_SIZE, { .name = "ITERATIONS" } },
      .search = METHOD_SEARCHES(recjpq_search_prune_limited, recjpq_cuda_search),
      .summary = "RecJPQPrune that stops after so many iterations",
  },
};

const struct methods recjpq_methods = { rows, sizeof rows / sizeof rows[0] };
