/* SPDX-License-Identifier: Apache-2.0 */
/* Which items have the rings of `exact` visited? Those in a cell below the level that the rings of its pair have
 * reached. An item's codes tell, so no set of visited items is needed, neither among the rings nor for a scan that
 * follows them. */
#ifndef ENGINE_RECJPQ_RECJPQ_VISITED_H
#define ENGINE_RECJPQ_RECJPQ_VISITED_H

#include "engine/recjpq/cells.h"

struct recjpq_visited {
  const struct cells *cells;
  const uint8_t *tables; /* [M][PQ_SUBITEMS]: the levels of sub-items (recjpq_deficits.h) */
  int *nexts;            /* [n_pairs]: all cells below this level have been visited; NULL: none */
};

/* Has an item been visited? codes [M]. */
static inline bool recjpq_was_visited(const struct recjpq_visited *v, const uint8_t *codes)
{
  for (size_t i = 0; i < v->cells->n_pairs; i++) {
    const struct cell_pair *p = &v->cells->pairs[i];
    int level = v->tables[p->first * PQ_SUBITEMS + codes[p->first]];
    if (p->n_splits == 2)
      level += v->tables[(p->first + 1) * PQ_SUBITEMS + codes[p->first + 1]];
    if (level < v->nexts[i])
      return true;
  }
  return false;
}

#endif
