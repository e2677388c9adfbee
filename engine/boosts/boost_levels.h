/* SPDX-License-Identifier: Apache-2.0 */
/* Levels: how far an item's boosts stay below the best sum, as bytes.
 *
 * What a boost adds at most is known by bucket (boost_bounds.h). How far that is below the best of all buckets is
 * quantised, as in product quantisation, and pq_scan() adds up the levels of an item's buckets. Where a search adds
 * tables for its similarity, a scan compares whole scores.
 *
 * One value that is far above all others would make the levels of these alike. So the items in the bucket with a
 * boost's largest values may pass in any case: then "the others" below are the items that do not.
 */
#ifndef ENGINE_BOOSTS_BOOST_LEVELS_H
#define ENGINE_BOOSTS_BOOST_LEVELS_H

#include "engine/boosts/boost_bounds.h"

enum { BOOST_LEVEL_MAX = 254 }; /* a level of more is too low */

struct boost_levels {
  const struct boost_bounds *bounds;
  double best[QUERY_BOOSTS_MAX]; /* what each boost adds at most to the others */
  int passes[QUERY_BOOSTS_MAX];  /* the bucket of each whose items pass in any case; -1: none */
  uint8_t *tables;               /* [n][PQ_SUBITEMS], aligned to 64 */
  uint8_t *matched;              /* [n][PQ_BLOCK_ITEMS] and PQ_FILTER_PAD: which items of a block a filter admits */
};

/* The levels' memory is in the region. Returns ERR_MEMORY. */
err_t boost_levels_init(const struct boost_bounds *bounds, struct region *region, struct boost_levels *out);

/* Choose which items pass in any case if all others need boosts of `least`. */
void boost_levels_choose(struct boost_levels *l, double least);

/* Return how far the best sum of the others is above `least`, or a little more. More than 0. */
double boost_levels_range(const struct boost_levels *l, double least);

/* Fill in the tables: `scale` levels in one unit of score, rounded down. */
void boost_levels_quantise(struct boost_levels *l, double scale);

/* Tables of others, which are added to those of the boosts. */
struct boost_tables {
  const uint8_t *const *tables; /* [n] */
  const uint8_t *const *rows;   /* [n]: of the block that is scanned, */
  const uint8_t *const *next;   /* [n]: and of the next one; NULL: none follows */
  size_t n;                     /* at most PQ_TABLES_MAX - QUERY_BOOSTS_MAX */
};

/* Clear the bits of n slots whose levels together are above the limit.
 *
 * first  a multiple of PQ_BLOCK_ITEMS
 * n      at most PQ_BLOCK_ITEMS
 * words  [bits_words(n)]: of these slots
 */
void boost_levels_narrow(const struct boost_levels *l, const struct boost_tables *others, size_t first, size_t n,
                         uint8_t limit, uint64_t *words);

#endif
