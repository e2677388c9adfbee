/* SPDX-License-Identifier: Apache-2.0 */
/* The scan of method `exact`, for the methods that begin in another way.
 *
 * A floor is a score that K items of a query are known to reach, or its min_score, -inf if there is neither. Items
 * below it are skipped. */
#ifndef ENGINE_MOL_MOL_EXACT_H
#define ENGINE_MOL_MOL_EXACT_H

#include "engine/mol/mol_scorer.h"
#include "engine/search/search_batch.h"

/* Find floors [batch->n] from the items with the best averaged vectors. Returns ERR_MEMORY. */
err_t mol_exact_seed(const struct mol_columns *c, struct search_batch *batch, float *floors);

/* Raise floors [batch->n] to the K-th best score among each query's seeds. The seeds themselves are not kept as hits.
 * Returns ERR_MEMORY. */
err_t mol_exact_floors(const struct mol_columns *c, struct search_batch *batch, uint64_t *const *seeds, float *floors);

/* Find the K best of all items, and write hits, counts and receipts. Returns ERR_MEMORY. */
err_t mol_exact_scan(const struct mol_columns *c, struct search_batch *batch, const float *floors);

/* The same, for batches whose queries admit few of the items that some query admits. job: that claims are of. */
err_t mol_exact_scan_admitted(const struct mol_columns *c, struct search_batch *batch, size_t job, const float *floors);

/* Is that faster than searching each query alone? */
bool mol_exact_scan_admitted_pays(const struct search_batch *batch);

#endif
