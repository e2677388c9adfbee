/* SPDX-License-Identifier: Apache-2.0 */
/* A guessed threshold, for large K. A proven one comes from K items, which are many to score and not the best ones. The
 * scores of a sample of all items tell nearly where the K-th best score is.
 *
 * The search looks for all items that reach the guess. If it finds K, they have the K best, and the guess was a valid
 * threshold. Otherwise the guess was too high: a scan offers all items below it that reach the query's min_score. */
#ifndef ENGINE_RECJPQ_RECJPQ_GUESS_H
#define ENGINE_RECJPQ_RECJPQ_GUESS_H

#include "engine/recjpq/recjpq_rule.h"
#include "engine/recjpq/recjpq_search.h"
#include "engine/search/search_batch.h"

/* Is K so large, and are so many items admitted, that a guess takes less time than a proof? */
bool recjpq_guess_pays(const struct kernels *kernels, const struct search_result *result, uint64_t n_items,
                       const struct recjpq_rule *rule);

/* Set the search's floor to a guess. Returns ERR_MEMORY. */
err_t recjpq_guess(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule);

/* After every item that reaches the floor was offered: was the floor a guess that fewer than K items reach? Then from
 * now on the search takes the items below it, and only those. It must scan all slots once more. */
bool recjpq_guess_failed(struct recjpq_search *s);

#endif
