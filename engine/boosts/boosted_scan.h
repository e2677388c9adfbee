/* SPDX-License-Identifier: Apache-2.0 */
/* A scan for the best sums of similarity and boosts, where the similarity is a sum of table entries
 * (engine/similarity/score_tables.h). Boosts are further tables: for nearly all items, a sum of bytes tells that theirs
 * is too small. */
#ifndef ENGINE_BOOSTS_BOOSTED_SCAN_H
#define ENGINE_BOOSTS_BOOSTED_SCAN_H

#include "engine/boosts/boost_bounds.h"
#include "engine/search/kth_best.h"
#include "engine/search/search_batch.h"
#include "engine/similarity/score_tables.h"

/* One query's scan. */
struct boosted_scan {
  const struct boost_bounds *bounds;
  struct score_tables *similarity;
  struct kth_best best; /* the k-th best sum so far is its threshold */
  uint64_t *words;
  uint64_t n_left;   /* bits of the words, after the scan */
  uint64_t n_scored; /* items whose sums were computed */
  uint8_t limit;     /* items with more levels have too small sums */
};

/* Clear the bits of items that cannot be among the k best sums, for several queries in one arena at once.
 *
 * scans  [n]: bounds, similarity, best and words are set. `best` has a threshold: the query's min_score, or the k-th
 *        best sum of items whose bits are not set. Bits are of slots that have a part. Those stay whose sums are at
 * least the k-th best of all
 *
 * pause  is called between blocks
 *
 * Time: that of reading a byte for each slot, split and boost.
 */
void boosted_scan_all(struct boosted_scan *const *scans, size_t n, const struct search_pause *pause);

#endif
