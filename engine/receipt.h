/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what an answer guarantees (docs/architecture.md). */
#ifndef ENGINE_RECEIPT_H
#define ENGINE_RECEIPT_H

#include "engine/columns.h"

/* Fill receipts and counts of a batch whose every admitted item was either scored or, like an item that is not among
 * the hits, proven not to belong to the K best: exact, and bounded by the K-th best score. To be called when the heaps
 * are complete. */
void receipt_exact(struct search_result *result, uint64_t n_items);

/* The same of an approximate search: `bound` is a proven upper bound on the score of any admitted item that was not a
 * candidate, of which there are n_outside; candidates that were not scored do not belong to the K best of them. */
void receipt_bounded(struct search_result *result, uint64_t n_items, uint64_t n_outside, float bound);

#endif
