/* SPDX-License-Identifier: Apache-2.0 */
/* Items that a warm-up has scored, before excluded keys were looked up. Few users have seen the best of them, so only
 * the best are looked up, when the warm-up is over. Slots and hashes of keys lie in cold memory. */
#ifndef ENGINE_RECJPQ_RECJPQ_UNCHECKED_H
#define ENGINE_RECJPQ_RECJPQ_UNCHECKED_H

#include "base/region.h"
#include "engine/search/search_batch.h"
#include "engine/similarity/admit.h"

/* An item that was scored, and whose slot has not been read yet. */
struct recjpq_unchecked_item {
  float score;
  const uint32_t *slot;
};

struct recjpq_unchecked {
  struct recjpq_unchecked_item *items; /* [capacity] */
  size_t n, capacity, k;
};

/* Make room for some times K items. Returns ERR_MEMORY. */
err_t recjpq_unchecked_init(size_t k, struct region *region, struct recjpq_unchecked *out);

/* Add an item that was not added before. Without room, items below the threshold are dropped, or else this one. */
void recjpq_unchecked_add(struct recjpq_unchecked *u, float score, const uint32_t *slot, float threshold);

/* Return a score that K admitted items reach: the threshold, which K items reach, if K admitted ones do too. Otherwise
 * the K-th best score of the admitted items, or -inf if there are fewer here. The order of the items changes. */
float recjpq_unchecked_floor(struct recjpq_unchecked *u, const struct admit *admit, float threshold);

#endif
