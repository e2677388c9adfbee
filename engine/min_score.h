/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving out hits whose scores are too low for the query: its `min_score`.
 *
 * The hits are the K best of all items, so those that reach min_score are the K best of the items that do. On the
 * processor the searches begin with min_score as their threshold, and skip items that are too low. If there are fewer
 * than K hits, every item outside them scores below min_score, which is the receipt's bound; there is none if no item
 * is outside. A lower bound proves even an approximate method's answer: whatever it has missed would have been left
 * out.
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
 * query   with the K of the search, which `mmr` makes larger
 * answer  its hits are sorted, the best first
 */
void min_score_cut(const struct query *query, struct answer *answer);

#endif
