/* SPDX-License-Identifier: Apache-2.0 */
/* Warm-up: a first threshold from a few cells of the best sub-items. */
#ifndef ENGINE_RECJPQ_RECJPQ_WARM_UP_H
#define ENGINE_RECJPQ_RECJPQ_WARM_UP_H

#include "engine/recjpq/recjpq_scan.h"

/* Set the search's floor: the K-th best score of some items of one pair's cells, for the pair where that is highest.
 * The items of one pair's cells are distinct, so K of them reach it. Nothing is pushed: the search meets these items
 * again. Returns ERR_MEMORY. */
err_t recjpq_warm_up(struct recjpq_search *s, struct search_batch *batch);

#endif
