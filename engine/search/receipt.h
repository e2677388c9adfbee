/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what an answer guarantees (docs/exactness.md). */
#ifndef ENGINE_RECEIPT_H
#define ENGINE_RECEIPT_H

#include "engine/search/search_batch.h"

/* Fill the receipt and the counts of an exact answer: every admitted item was either scored or proven not to be among
 * the K best, or to score less than min_score. The bound is the K-th best score, or min_score if that is higher. Call
 * this when the heap is complete. */
void receipt_exact(struct search_result *result, uint64_t n_items);

/* Fill the receipt and the counts of an approximate answer. n_outside admitted items were not candidates, and `bound`
 * is a proven upper bound on their scores. Candidates that were not scored must be proven not to be among the K best
 * candidates. */
void receipt_bounded(struct search_result *result, uint64_t n_items, uint64_t n_outside, float bound);

#endif
