/* SPDX-License-Identifier: Apache-2.0 */
/* At most n hits with the same value of an attribute (struct max_per): which of a list of hits are crowded out by
 * better ones, and which values have their n hits.
 *
 * Taken in order of rank, a hit is crowded out if n hits before it have its value. A hit without the attribute never
 * is. This greedy choice has the best hits that are possible: the limits of values are independent of each other, so
 * each value keeps its n best.
 */
#ifndef BASE_CROWDING_H
#define BASE_CROWDING_H

#include "base/query.h"
#include "base/region.h"

struct crowding {
  bool *is_out;              /* [n_hits] */
  const struct value **full; /* [n_full] the values that at least n hits have, in order (crowding_compare()) */
  size_t n_full;
};

/* Look at hits in order of rank.
 *
 * hits  [n_hits] with their values
 * most  n, at least 1
 * out   lives in the region, and borrows the values
 *
 * Returns ERR_MEMORY. Thread: the one that owns the region. Time: that of sorting the hits by value.
 */
err_t crowding_find(const struct hit *hits, size_t n_hits, uint32_t most, struct region *region, struct crowding *out);

/* Compare the values of two hits: absent ones first, then false, true, integers, and texts bytewise. Returns <0, 0 or
 * >0. */
int crowding_compare(const struct value *a, const struct value *b);

#endif
