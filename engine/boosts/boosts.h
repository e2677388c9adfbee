/* SPDX-License-Identifier: Apache-2.0 */
/* Boosts: what a query adds to the scores of items (struct boost).
 *
 * The score of a hit is s + b, where s is its similarity and b the sum of its boosts. b is computed in double, boost by
 * boost in the query's order, from 0 on; a boost counts within +-BOOST_MAX. s + b is computed in double and rounded to
 * float. There are no fused multiply-adds. So every machine and every backend gives the same bits.
 */
#ifndef ENGINE_BOOSTS_BOOSTS_H
#define ENGINE_BOOSTS_BOOSTS_H

#include "base/query.h"
#include "base/region.h"
#include "engine/admission/admission.h"

#define BOOST_MAX 1e30

/* Verify the attributes of a query's boosts. Returns ERR_QUERY with the reason. Thread: any. */
err_t boosts_check(const struct query *query, const struct attributes *attributes);

/* Parse the filters of a query's boosts, which live in the region then. Returns ERR_QUERY, ERR_MEMORY. Thread: any. */
err_t boosts_parse(struct query *query, const struct attributes *attributes, struct region *region);

/* One boost, bound to the columns of an arena. */
struct bound_boost {
  const struct boost *boost;
  double weight;
  const struct attribute_selection *filter; /* NULL: there is an attribute */
  const uint64_t *words;                    /* of the filter, for slots with a part; NULL: not known yet */
  size_t attribute;
  double half_life_ms; /* 0: the value itself counts */
};

/* The boosts of a query, bound to an arena. */
struct boosts {
  const struct arena *arena;
  double now_ms;
  size_t n;
  struct bound_boost v[QUERY_BOOSTS_MAX];
};

/* Bind checked boosts. Valid while the arena is in front. Returns ERR_MEMORY. */
err_t boosts_bind(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                  struct region *region, struct boosts *out);

/* Find the words of the filters, which the cache may have: from here on, only slots with a part in the space that are
 * alive are asked for, and each is looked up.
 *
 * held  holds the words; it has found what the query admits
 *
 * Returns ERR_MEMORY.
 */
err_t boosts_evaluate(struct boosts *b, const struct admission_target *target, struct region *region,
                      struct admission *held);

/* Does an item of the arena lack the attribute of a boost? */
bool boost_is_sparse(const struct boosts *b, size_t i);

/* Return what a boost adds if its attribute has this value, or, for a filter, if the filter admits the slot. */
double boosts_of_value(const struct boosts *b, size_t i, double value);

/* Return the sum of a slot's boosts. */
double boosts_of_slot(const struct boosts *b, uint32_t slot);

/* Return the score of an item. */
static inline float boosts_score(float similarity, double sum)
{
  return (float)((double)similarity + sum);
}

/* Return a sum of boosts that an item needs for this score, if its similarity is at most `most_similar`; or a little
 * less. -infinity for a score of -infinity. */
double boosts_least(float score, double most_similar);

/* Add boosts to hits [n] that a search of the arena has found without them. Their keys become the arena's. */
void boosts_add(const struct boosts *b, struct hit *hits, size_t n);

#endif
