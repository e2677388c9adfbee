/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-items of one split in order of a byte, the level: a counting sort, which takes a tenth of the time of sorting
 * by scores. */
#ifndef ENGINE_RECJPQ_RECJPQ_LEVELS_H
#define ENGINE_RECJPQ_RECJPQ_LEVELS_H

#include "engine/recjpq/recjpq_deficits.h"

struct recjpq_levels {
  size_t n;                          /* sub-items that have items, of levels up to RECJPQ_LEVELS */
  uint8_t subitems[PQ_SUBITEMS];     /* [n]: rising level, then rising number */
  uint16_t n_below[2 * PQ_SUBITEMS]; /* see recjpq_levels_below() */
};

/* table [PQ_SUBITEMS]: levels; lengths [n_subitems]: items that have each sub-item. */
void recjpq_levels_sort(const uint8_t *table, const uint32_t *lengths, size_t n_subitems, struct recjpq_levels *out);

/* How many of `subitems` are below a level from -256 to 255. */
static inline size_t recjpq_levels_below(const struct recjpq_levels *l, int level)
{
  return l->n_below[level + PQ_SUBITEMS];
}

#endif
