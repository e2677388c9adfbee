/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations: why items are among the hits of a query, or not. All is of the epoch that was searched. */
#ifndef ENGINE_EXPLAIN_H
#define ENGINE_EXPLAIN_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"
#include "engine/similarity/admit.h"

/* What is explained. */
struct explain {
  const struct arena *arena;
  size_t space;
  const struct query *query;
  size_t attribute;          /* of its max_per */
  const struct admit *admit; /* of the query */
};

/* Begin the explanations of a query: say which items cannot be hits and why, and find the slots that have a score.
 *
 * out     [query->n_explain], in the region. Verdicts of items that are admitted are open: 0
 * scored  the slots that have a part of the space, for a search that scores just these
 *
 * Returns ERR_MEMORY.
 */
err_t explain_begin(const struct explain *e, struct region *region, struct explanation **out, struct admit *scored);

/* Complete the explanations.
 *
 * answer  of the query, with its hits
 * scores  [n_scores] the items of `scored`, as hits
 */
void explain_finish(const struct explain *e, const struct answer *answer, const struct hit *scores, size_t n_scores,
                    struct explanation *out);

#endif
