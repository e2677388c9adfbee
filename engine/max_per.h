/* SPDX-License-Identifier: Apache-2.0 */
/* Searching with at most n hits of each value of an attribute (struct max_per), by any method.
 *
 * A search finds more than k hits, and crowded ones are left out of them (base/crowding.h). That is exact: what the
 * search has not found comes after all that it has. If fewer than k are left, a second round finds more hits. Further
 * ones search among the items that are neither hits nor have a value that has its n hits. Rounds find more and more
 * hits, and mostly there is one. There are 64 at most, and 8 if a method gives less than it is asked for. An answer
 * that ends there has fewer hits than it could have, and its receipt says so.
 *
 * The rounds of a batch are searched together, with those of its other queries (search_rounds.h).
 *
 * Thread: the one that searches. Allocates: in the searcher's region.
 */
#ifndef ENGINE_MAX_PER_H
#define ENGINE_MAX_PER_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"
#include "engine/similarity/admit.h"

/* Verify the attribute of a query that has a max_per. Returns ERR_QUERY with the reason. Thread: any. */
err_t max_per_check(const struct max_per *max_per, const struct attributes *attributes);

/* A query and its hits, from round to round. */
struct max_per_search {
  const struct arena *arena;
  const struct query *query; /* without `like` */
  size_t attribute;
  struct query wider;  /* what the round asks for */
  struct admit admit;  /* what it admits */
  struct answer found; /* what it has found */
  uint64_t *words;     /* [bits_words(n_slots)] for admit; NULL after the first round: there is no other one */
  struct hit *hits;    /* [k] so far, in order. Keys and values are the arena's */
  size_t n_hits;
  float missed_below; /* rounds have missed only items that score at most this; -inf: none */
  size_t n_rounds;    /* that were taken */
  bool is_done;       /* there is no further round */
  struct answer *answer;
};

/* Begin with the first round: search `wider` among `admit`, and write `found`.
 *
 * attributes  of the engine
 * admit       of the query
 * answer      of the query; max_per_write() completes it
 */
void max_per_begin(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                   const struct admit *admit, struct answer *answer, struct max_per_search *out);

/* Take what a round has found. Then the next one is to be searched in the same way, unless is_done is set.
 *
 * kept     what is allocated has to stay until max_per_write()
 * scratch  for the call
 *
 * Returns ERR_MEMORY.
 */
err_t max_per_take(struct max_per_search *s, struct region *kept, struct region *scratch);

/* Write the answer, when all rounds are done. Its hits live in the region. Returns ERR_MEMORY. */
err_t max_per_write(struct max_per_search *s, struct region *region);

#endif
