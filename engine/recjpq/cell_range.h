/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a pair whose first code is in a range: what one step adds to deferred cells, by building or by copying.
 * Private to the files that do that. */
#ifndef ENGINE_RECJPQ_CELL_RANGE_H
#define ENGINE_RECJPQ_CELL_RANGE_H

#include "engine/recjpq/cells.h"

struct cell_range {
  struct cell_pair *pair;
  size_t place; /* of the pair */
  size_t from, end;
};

/* Number of cells that have a first code below this. */
static inline size_t cell_range_n_below(const struct cells *c, const struct cell_pair *p, size_t code)
{
  return p->n_splits == 2 ? code * c->n_subitems : code;
}

/* Return the next cells that wait, up to the first code with which they have so many items. There must be some. */
static inline struct cell_range cell_range_next(const struct cells *c, size_t n_items)
{
  struct cell_range r = { &c->pairs[c->n_built], c->n_built, c->n_built_codes, c->n_built_codes };
  const uint32_t *lengths = c->lengths + r.pair->first * c->n_subitems;

  for (size_t n = 0; r.end < c->n_subitems && n < n_items; r.end++)
    n += lengths[r.end];
  return r;
}

/* These cells, the next ones, hold all their items from now on. */
static inline void cell_range_finish(struct cells *c, const struct cell_range *r)
{
  bool is_last = r->end == c->n_subitems;

  c->n_built += is_last;
  c->n_built_codes = is_last ? 0 : r->end;
}

#endif
