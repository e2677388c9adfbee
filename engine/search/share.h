/* SPDX-License-Identifier: Apache-2.0 */
/* What the members of a team share while they search one batch: which steps are claimed, and for each query a floor,
 * which is the query's min_score or a score that K admitted items reach.
 *
 * A search that can be divided does its work in steps, and claims the next ones before it does them. Each member does
 * the whole search over the steps that it claims, in a batch, results and scratch memory of its own. Whatever the
 * steps of a member: its heap has every one of its items that is among the K best of all and reaches min_score. So the
 * merged heaps have the K best, in an order that is total. Neither the number of members nor their timing changes the
 * hits.
 *
 * A claim is also where a search pauses, so that its thread can do something short in between.
 *
 * Floors are exchanged when steps are claimed. In between a search reads only its own memory. A search that nobody
 * shares claims its steps in the same way, and exchanges nothing.
 */
#ifndef ENGINE_SHARE_H
#define ENGINE_SHARE_H

#include <math.h>
#include <stdatomic.h>

#include "engine/search/search_batch.h"
#include "engine/team/team.h"

struct share {
  struct team_search search;
  bool steps_one_by_one;                             /* claim one step at a time: for tests */
  _Atomic float *floors;                             /* [queries of the batch] */
  _Alignas(64) _Atomic size_t n_claimed[SHARE_JOBS]; /* written by all members: not in the cache line of the rest */
};

/* Consecutive steps: first to end - 1. */
struct share_steps {
  size_t first, end;
};

/* Claim at most n_each of the steps from 0 to n_steps - 1 of a job that nobody has claimed. A search that does several
 * jobs one after the other numbers them from 0. Returns false if all steps are claimed.
 *
 * Floors are exchanged: result->floor rises to the best floor that is known to any member. Before the call, the method
 * may have raised it to any score that K admitted items reach; it never lowers it.
 *
 * Choose n_each so that the steps take some 20 to 200 us: claims cost little. The last claims of a job are smaller, so
 * that members end at about the same time; but not if n_each gives every member about one claim.
 */
bool share_claim(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each, struct share_steps *out);

/* Let every further claim fail, because a member has failed. */
void share_abandon(struct share *share);

/* Return how many members may share the search. */
static inline size_t share_members_max(const struct search_batch *batch)
{
  return batch->share ? batch->share->search.n_max : 1;
}

/* The lowest score that may still enter the top K: the K-th best score of this member, or the floor if that is higher.
 * An item with just this score may enter, because ties are ordered by key. */
static inline float share_threshold(const struct search_result *result)
{
  return fmaxf(result->floor, topk_threshold(&result->topk));
}

#endif
