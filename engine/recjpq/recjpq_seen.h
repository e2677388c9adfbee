/* SPDX-License-Identifier: Apache-2.0 */
/* Which items have the rings of `exact` seen? Those in a cell below the level that the rings of its pair have reached.
 * An item's codes tell, so no set of seen items is needed, neither among the rings nor for a scan that follows them. */
#ifndef ENGINE_RECJPQ_RECJPQ_SEEN_H
#define ENGINE_RECJPQ_RECJPQ_SEEN_H

#include "engine/recjpq/cells.h"

struct recjpq_seen {
  const struct cells *cells;
  const uint8_t *tables; /* [M][PQ_SUBITEMS]: the levels of sub-items (recjpq_deficits.h) */
  int *nexts;            /* [n_pairs]: all cells below this level have been visited; NULL: none */
};

/* Has an item been seen? codes [M]. */
static inline bool recjpq_was_seen(const struct recjpq_seen *s, const uint8_t *codes)
{
  for (size_t i = 0; i < s->cells->n_pairs; i++) {
    const struct cell_pair *p = &s->cells->pairs[i];
    int level = s->tables[p->first * PQ_SUBITEMS + codes[p->first]];
    if (p->n_splits == 2)
      level += s->tables[(p->first + 1) * PQ_SUBITEMS + codes[p->first + 1]];
    if (level < s->nexts[i])
      return true;
  }
  return false;
}

#endif
