/* SPDX-License-Identifier: Apache-2.0 */
/* Excluded keys: found as slots of an epoch, and taken out of what a query admits. */
#ifndef ENGINE_EXCLUSION_H
#define ENGINE_EXCLUSION_H

#include "engine/admit.h"
#include "engine/keys.h"

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

#endif
