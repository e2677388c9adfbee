/* SPDX-License-Identifier: Apache-2.0 */
/* The rings in which `exact` visits cells. A level (recjpq_deficits.h) counts how far a sub-item is below the best one
 * of its split. The level of a cell is the sum of its two levels. A ring is the cells of a few levels of a pair, and
 * each pair's rings follow each other by rising level. */
#ifndef ENGINE_RECJPQ_RECJPQ_RINGS_H
#define ENGINE_RECJPQ_RECJPQ_RINGS_H

#include "engine/recjpq/recjpq_levels.h"

struct recjpq_ring_pair {
  const struct cell_pair *cells;
  const struct recjpq_levels *a, *b; /* of its splits; b is NULL if the pair has one split */
  const uint8_t *table_a, *table_b;
  const uint8_t **others; /* [n_others]: tables of the other splits, in the order of the deficits */
  uint8_t *rows;          /* [n_others]: the row of a cell's codes that belongs to each of these splits */
  int next;               /* all cells below this level have been visited */
  size_t next_cells;      /* cells in the next ring */
};

struct recjpq_rings {
  struct recjpq_ring_pair *pairs;
  size_t n_pairs;
};

/* Begin with the lowest level of each pair. The tables of the deficits and the cells are kept, not copied. Returns
 * ERR_MEMORY. */
err_t recjpq_rings_init(const struct recjpq_deficits *d, const struct cells *cells, struct region *scratch,
                        struct recjpq_rings *out);

/* By how many levels must the rings rise until no unseen item can reach the limit? Zero or less: the search is done. */
int recjpq_rings_left(const struct recjpq_rings *r, int limit);

/* Return the pair whose next ring has the fewest cells: it comes next. */
struct recjpq_ring_pair *recjpq_rings_cheapest(const struct recjpq_rings *r);

/* The level at which the next ring of a pair ends, if `left` levels are left: at most PQ_SUBITEMS - 1. */
int recjpq_rings_end(const struct recjpq_ring_pair *p, int left);

/* All cells of the pair below this level have been visited. */
void recjpq_rings_set_next(struct recjpq_ring_pair *p, int next);

/* Return the number of cells still to visit for a limit, the last ring counted in full. Above `most`, counting stops.
 */
size_t recjpq_rings_count(const struct recjpq_rings *r, int limit, size_t most);

#endif
