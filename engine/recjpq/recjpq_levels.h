/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-items of one split, sorted by level, a byte. It is a counting sort, which takes a tenth of the time of
 * sorting by scores. */
#ifndef ENGINE_RECJPQ_RECJPQ_LEVELS_H
#define ENGINE_RECJPQ_RECJPQ_LEVELS_H

#include "engine/recjpq/recjpq_deficits.h"

struct recjpq_levels {
  size_t n;                          /* number of sub-items that have items and a level of at most RECJPQ_LEVELS */
  uint8_t subitems[PQ_SUBITEMS];     /* [n]: by rising level, then by rising number */
  uint16_t n_below[2 * PQ_SUBITEMS]; /* see recjpq_levels_below() */
};

/* Sort the sub-items of a split. table [PQ_SUBITEMS]: their levels; lengths [n_subitems]: how many items have each. */
void recjpq_levels_sort(const uint8_t *table, const uint32_t *lengths, size_t n_subitems, struct recjpq_levels *out);

/* How many of `subitems` are below a level, which may be -256 to 255? */
static inline size_t recjpq_levels_below(const struct recjpq_levels *l, int level)
{
  return l->n_below[level + PQ_SUBITEMS];
}

#endif
