/* SPDX-License-Identifier: Apache-2.0 */
/* The table of RecJPQ methods (RecJPQPrune paper, sections 3 and 4). On a GPU the exhaustive scan runs at the speed of
 * memory, so it serves every row. Exact methods return the same answers as on the processor. Unsafe ones return the
 * exact answer, which is at least as good as the processor's. */
#include "engine/recjpq/recjpq_methods.h"

#include "engine/recjpq/recjpq_admitted.h"
#include "engine/recjpq/recjpq_model.h"

/* Filters that admit few items: the same for all exact methods. */
#define ADMITTED .items_per_admitted = RECJPQ_SLOTS_PER_ADMITTED, .search_admitted = recjpq_search_admitted

#define BATCH_SIZE                   \
  {                                  \
    .name = "BS", .max = PQ_SUBITEMS \
  }

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
      ADMITTED,
      .checks_late = true,
      .items_per_member = 1 << 20,
      .queries_per_claim = 1,
      .search = METHOD_SEARCHES(recjpq_search_exact, recjpq_cuda_search),
      .summary = "dynamic pruning over pairs of splits",
  },
  {
      .name = "pqtopk",
      .is_exact = true,
      ADMITTED,
      .checks_late = true,
      .items_per_member = 1 << 19,
      .search = METHOD_SEARCHES(recjpq_search_pqtopk, recjpq_cuda_search),
      .summary = "every item; a filter on 8-bit sums skips most",
  },
  {
      .name = "default",
      .is_exact = true,
      ADMITTED,
      .items_per_member = 1024,
      .search = METHOD_SEARCHES(recjpq_search_default, recjpq_cuda_search),
      .summary = "every item reconstructed and scored: the baseline",
  },
  {
      .name = "prune",
      .is_exact = true,
      ADMITTED,
      .args = { BATCH_SIZE },
      .items_per_member = 1 << 18,
      .queries_per_claim = 1,
      .search = METHOD_SEARCHES(recjpq_search_prune, recjpq_cuda_search),
      .summary = "RecJPQPrune with batches of BS sub-items, safe to rank k",
  },
  {
      .name = "prune_inflated",
      .args = { BATCH_SIZE, { .name = "PERCENT", .min = 100 } },
      .items_per_member = 1 << 18,
      .queries_per_claim = 1,
      .search = METHOD_SEARCHES(recjpq_search_prune_inflated, recjpq_cuda_search),
      .summary = "RecJPQPrune with an inflated threshold: it may stop too early",
  },
  {
      .name = "prune_limited",
      .args = { BATCH_SIZE, { .name = "ITERATIONS" } },
      .items_per_member = 1 << 18,
      .queries_per_claim = 1,
      .search = METHOD_SEARCHES(recjpq_search_prune_limited, recjpq_cuda_search),
      .summary = "RecJPQPrune with limited iterations",
  },
};

const struct methods recjpq_methods = { rows, sizeof rows / sizeof rows[0] };
