/* SPDX-License-Identifier: Apache-2.0 */
/* Which items may have boosts of at least some sum, without reading their values.
 *
 * Each number of an item lies in a bucket of its column (engine/attributes/value_buckets.h): a byte. What a boost adds
 * at most is therefore known by bucket, and for all items. With one boost, the buckets that add enough are a set, and a
 * filter is a bitmap. Sums of several boosts are compared by levels (boost_levels.h), which let a few others pass, too.
 */
#ifndef ENGINE_BOOSTS_BOOST_BOUNDS_H
#define ENGINE_BOOSTS_BOOST_BOUNDS_H

#include "engine/attributes/value_buckets.h"
#include "engine/boosts/boosts.h"
#include "kernels/kernels.h"

/* Sums are rounded, and decay() is not quite monotone. Both errors are far below this share. */
#define BOOST_SLACK 1e-11

struct boost_levels;

/* Return a sum that no item's boosts exceed. Time: that of a few boosts. */
double boost_bounds_highest(const struct boosts *b);

struct boost_bounds {
  const struct boosts *boosts;
  const struct kernels *kernels;
  double highest;                               /* no item's boosts exceed it */
  double magnitude;                             /* sum of |best[i]| */
  double best[QUERY_BOOSTS_MAX];                /* what each adds at most */
  double most[QUERY_BOOSTS_MAX][VALUE_BUCKETS]; /* the same of the items in a bucket; a filter has buckets 0 and 1 */
  struct boost_levels *levels;                  /* for scans: boost_levels.h */
};

/* Make bounds, in the region, for boosts whose filters are evaluated. Returns ERR_MEMORY. */
err_t boost_bounds_make(const struct boosts *b, const struct kernels *kernels, struct region *region,
                        struct boost_bounds **out);

/* Clear the bits of items whose boosts are below `least`. A few others may stay that are.
 *
 * least  at most `highest`; -infinity: all stay
 * words  [bits_words(n_slots)] of slots
 *
 * Returns how many bits are left. Time: that of reading a byte for each slot and boost.
 */
uint64_t boost_bounds_narrow(const struct boost_bounds *bounds, double least, uint64_t *words);

/* Return about how many bits boost_bounds_narrow() would leave, from a sample of blocks.
 *
 * least    as above, but not -infinity
 * words    [bits_words(n_slots)] of slots
 * scratch  [bits_words(n_slots)]
 */
uint64_t boost_bounds_estimate(const struct boost_bounds *bounds, double least, const uint64_t *words,
                               uint64_t *scratch);

#endif
