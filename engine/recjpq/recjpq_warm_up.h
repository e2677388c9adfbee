/* SPDX-License-Identifier: Apache-2.0 */
/* The warm-up: finds a first threshold from a few cells of the best sub-items. */
#ifndef ENGINE_RECJPQ_RECJPQ_WARM_UP_H
#define ENGINE_RECJPQ_RECJPQ_WARM_UP_H

#include "engine/recjpq/recjpq_search.h"
#include "engine/search/search_batch.h"

/* Set the search's floor. For each pair of splits, the items of a few cells are scored. The items of one pair's cells
 * are distinct, so K of them reach the K-th best of their scores. The floor is the highest of these K-th best scores
 * over the pairs. No hits are recorded: the search sees these items again. Returns ERR_MEMORY. */
err_t recjpq_warm_up(struct recjpq_search *s, struct search_batch *batch);

#endif
