/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving out hits whose scores are too low for the query: its `min_score`.
 *
 * The hits are the K best of all items, so those that reach min_score are the K best of the items that do. One that was
 * left out is as any item outside the hits: the receipt's bound counts it. A bound below min_score proves even an
 * approximate method's answer: whatever it has missed would have been left out.
 *
 * Thread: any.
 */
#ifndef ENGINE_MIN_SCORE_H
#define ENGINE_MIN_SCORE_H

#include "base/query.h"

/* Is a score too low for the query? */
bool min_score_is_missed(const struct query *query, float score);

/* Leave out the hits of an answer that are too low, and adapt its receipt. Does nothing if the query has no min_score.
 *
 * answer  its hits are sorted, the best first
 */
void min_score_cut(const struct query *query, struct answer *answer);

#endif
