/* SPDX-License-Identifier: Apache-2.0 */
/* Excluded keys: found as slots of an epoch, and taken out of what a query admits. */
#ifndef ENGINE_EXCLUSION_H
#define ENGINE_EXCLUSION_H

#include "engine/attributes/attribute_selection.h"
#include "engine/keys/keys.h"
#include "engine/similarity/admit.h"

/* Where keys are excluded. */
struct exclusion {
  const struct keys *keys;
  size_t n_words; /* of 64 slots */
};

/* Take keys out of what a query admits. A short list stays a list. For a long one, the query gets words of its own, in
 * which the slots' bits are 0.
 *
 * keys   [n]; keys that no item has, that are not admitted or that come twice do no harm
 * admit  words and n_admitted are set, and nothing is excluded yet
 *
 * Returns ERR_MEMORY. Allocates: from the region.
 */
err_t exclusion_apply(const struct exclusion *e, const struct span *keys, size_t n, struct region *region,
                      struct admit *admit);

/* Is a list of n keys short, so that it stays a list? */
bool exclusion_is_short(const struct exclusion *e, size_t n);

/* The same for a short list where there are no words: the filter is evaluated for the slots of the keys alone. That
 * takes at most about an eighth of the time for all slots.
 *
 * among   bits of the slots that the query admits without its filter.
 * filter  bound to the attributes of the arena.
 * admit   out: the listed slots, and n_admitted less their number. Before, n_admitted counts what the filter admits, or
 *         bounds it.
 */
err_t exclusion_list(const struct exclusion *e, const struct span *keys, size_t n, const uint64_t *among,
                     const struct attribute_selection *filter, struct region *region, struct admit *admit);

#endif
