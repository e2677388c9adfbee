/* SPDX-License-Identifier: Apache-2.0 */
/* The items that a search with boosts has left: which of them can still be hits, and how they are searched next.
 *
 * Thread and memory: as boosted_search.h.
 */
#ifndef ENGINE_BOOSTS_BOOSTED_LEFT_H
#define ENGINE_BOOSTS_BOOSTED_LEFT_H

#include <math.h>

#include "engine/boosts/boosted_search.h"

/* Return the sum that an item needs to be among the hits: equal ones come in the order of their keys. */
static inline float boosted_left_threshold(const struct boosted_search *s)
{
  float kth = s->n_hits > 0 && s->n_hits == s->query->k ? s->hits[s->n_hits - 1].score : -INFINITY;

  return s->query->has_min_score && s->on.is_exact ? fmaxf(kth, s->query->min_score) : kth;
}

/* Return the sum of boosts that an item needs, if it is as similar as those that are left may be. */
static inline double boosted_left_least(const struct boosted_search *s)
{
  return boosts_least(boosted_left_threshold(s), (double)s->most_similar);
}

/* Is an item a hit, or, if it scores at most so much, can it be one? */
bool boosted_left_has_hit(const struct boosted_search *s, uint32_t slot, float score);

/* Choose what the next round searches, after one whose hits were taken: the items that can still be hits, or, before
 * them, those with the largest boosts. Without any, the search is done. Or prepare a scan. Returns ERR_MEMORY. */
err_t boosted_left_choose(struct boosted_search *s, struct region *kept, struct region *scratch);

#endif
