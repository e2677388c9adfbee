/* SPDX-License-Identifier: Apache-2.0 */
/* When does `exact` give up its rings for a scan? The rings of some queries have so many cells that a scan is faster.
 * After a trial of 3 % of a scan's time, the threshold is nearly final, and what is left to visit can be predicted. All
 * costs are in cells: that of a scan is the number of cells that can be visited in its time. */
#ifndef ENGINE_RECJPQ_RECJPQ_BUDGET_H
#define ENGINE_RECJPQ_RECJPQ_BUDGET_H

#include "engine/recjpq/recjpq_rings.h"
#include "engine/recjpq/recjpq_rule.h"
#include "engine/recjpq/recjpq_search.h"
#include "engine/search/kth_best.h"
#include "engine/search/search_batch.h"

struct recjpq_budget {
  size_t n_scan;         /* the cost of a scan */
  size_t n_unchecked;    /* up to this cost, rings are visited without a prediction */
  size_t n_tolerated;    /* the predicted cost up to which they go on: at first it may be more than that of a scan */
  size_t n_before_look;  /* candidates at the last prediction, or when the search began */
  struct kth_best found; /* scratch memory of predictions */
};

/* The budget of one query's rings. Returns ERR_MEMORY. */
err_t recjpq_budget_init(const struct recjpq_search *s, const struct search_batch *batch,
                         const struct recjpq_rule *rule, struct recjpq_budget *out);

/* Is a prediction due before the next ring, of n_next cells? n_visited: the cells of all rings until now. */
bool recjpq_budget_is_due(const struct recjpq_budget *b, const struct recjpq_search *s, size_t n_visited,
                          size_t n_next);

/* Predict: will the remaining cells take no longer than a scan? No cell may be in flight. */
bool recjpq_budget_allows(struct recjpq_budget *b, const struct recjpq_search *s, const struct recjpq_rings *rings,
                          size_t n_visited);

#endif
