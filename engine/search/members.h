/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one search in the members of a team, and merges their results. What the search function itself has to do is in
 * share.h. */
#ifndef ENGINE_MEMBERS_H
#define ENGINE_MEMBERS_H

#include "engine/search/share.h"
#include "engine/similarity/methods.h"

/* The memory of the members of a searcher. */
struct members;

/* team               borrowed
 * n_max              members of one search, 2 to TEAM_MEMBERS_MAX
 * max_batch          queries of one search
 * shares_always      share searches however small they are, step by step, and let no member begin before all are there
 */
err_t members_open(struct team *team, size_t n_max, size_t max_batch, bool shares_always, struct members **out);
void members_close(struct members **m);

/* Search a batch with the method of a row, like its search function. The calling thread does what no helper does.
 *
 * Returns ERR_MEMORY. Thread: the one that owns the searcher. */
err_t members_search(struct members *m, const struct method_row *row, const struct columns *columns,
                     struct search_batch *batch);

#endif
