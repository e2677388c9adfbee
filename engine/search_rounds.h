/* SPDX-License-Identifier: Apache-2.0 */
/* Searching a batch in rounds. Most queries need one. Those with a max_per (max_per.h) or boosts (boosts/
 * boosted_search.h) may need more: what a round finds says what the next one is to find. The queries that need one more
 * round are searched together. Private to searcher.c.
 */
#ifndef ENGINE_SEARCH_ROUNDS_H
#define ENGINE_SEARCH_ROUNDS_H

#include "engine/search_groups.h"

/* Search queries, and write their answers.
 *
 * queries  [n], for which search_groups_admit() was called
 * answers  [n]; where one has an error already, its query is not searched
 *
 * Returns ERR_MEMORY or ERR_DEVICE. Allocates: in the searcher's regions; the answers live in its scratch.
 */
err_t search_rounds(struct search *s, const struct query *const *queries, size_t n, struct answer *answers);

#endif
