/* SPDX-License-Identifier: Apache-2.0 */
/* Searches one query in two generations of its space, and compares the hits.
 *
 * The current generation is searched again. What its answer had would not do: items, and what the user has seen, may
 * have changed since, and its search shared the cores with helpers and its time with a batch. So both searches run
 * alone in one thread, on the same epoch, and the models make the difference. Only if epochs follow each other faster
 * than searches do, the epochs of the third try differ.
 *
 * Thread: the one that owns it.
 */
#ifndef DAEMON_QUERIES_SHADOW_SEARCH_H
#define DAEMON_QUERIES_SHADOW_SEARCH_H

#include "daemon/shadow/shadow_measures.h"
#include "engine/engine.h"

/* All zeros but the first two: no query was searched. */
struct shadow_search {
  struct engine *engine;
  const _Atomic bool *is_stopping; /* no search begins then */
  struct searcher *searcher;       /* opened when it is needed first */
  struct region region;
};

void shadow_search_fini(struct shadow_search *s);

/* Both answers. They and all that they point to are valid until the next search. */
struct shadow_pair {
  struct answer current, shadow;
};

/* Search a query that was checked.
 *
 * query            names no generation
 * is_shadow_first  the order of the two searches: the second one may find more in the caches
 *
 * Returns ERR_SPACE if there is no such generation (any more), or it is the current one; ERR_SPACE_CHANGED if it has
 * changed meanwhile; ERR_METHOD or ERR_QUERY if one of the two cannot search the query; ERR_STOPPING; other errors of
 * the engine.
 */
err_t shadow_search_both(struct shadow_search *s, const struct query *query, uint32_t generation, bool is_shadow_first,
                         struct shadow_pair *out);

#endif
