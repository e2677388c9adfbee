/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of `exact`, `pqtopk` and the search of admitted items. */
#ifndef ENGINE_RECJPQ_RECJPQ_BEGIN_H
#define ENGINE_RECJPQ_RECJPQ_BEGIN_H

#include "engine/recjpq/recjpq_rule.h"
#include "engine/recjpq/recjpq_search.h"

/* Prepare a query. If its result has no floor above its min_score, and the catalogue is large enough, a warm-up over
 * the cells finds one; for large K it is guessed. Then compute the deficits for that floor. The columns must have at
 * least one item. Returns ERR_MEMORY. */
err_t recjpq_begin(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                   const struct recjpq_rule *rule, struct recjpq_search *out);

#endif
