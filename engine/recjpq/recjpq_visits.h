/* SPDX-License-Identifier: Apache-2.0 */
/* Visits the cells of rings: prefetches them, filters their items, and scores and offers those that pass. Many cells
 * are in flight at a time, since a cell's head, its codes and its slots lie in cold memory, each behind the one before.
 */
#ifndef ENGINE_RECJPQ_RECJPQ_VISITS_H
#define ENGINE_RECJPQ_RECJPQ_VISITS_H

#include "engine/recjpq/recjpq_rings.h"
#include "engine/recjpq/recjpq_search.h"
#include "engine/recjpq/recjpq_unchecked.h"

enum {
  RECJPQ_GROUP_PIECES = 24, /* pieces of cells between their prefetch and the filter */
  RECJPQ_VISITS_MAX = 32,   /* cells between the prefetch of a cell's head and its use */
  RECJPQ_OPEN_MAX = 64, /* more rings than can have cells in flight, in `visits` and two groups, and one that begins */
};

/* A ring that has begun. Its cells may be in flight: their memory is being prefetched, while later rings begin. */
struct recjpq_open_ring {
  const struct recjpq_ring_pair *pair;
  struct recjpq_seen seen; /* by the other pairs' rings when this ring began */
};

/* A cell whose head is being prefetched. */
struct recjpq_visit {
  uint32_t cell;
  uint8_t level;
  uint8_t ring;
};

/* Pieces of cells of one ring. */
struct recjpq_ring_group {
  uint8_t ring;
  size_t n;
  struct pq_piece pieces[RECJPQ_GROUP_PIECES];
  uint32_t cells[RECJPQ_GROUP_PIECES];  /* the cell of each piece */
  uint32_t firsts[RECJPQ_GROUP_PIECES]; /* its first item in the cell */
};

struct recjpq_visits {
  struct recjpq_search *search;
  const struct recjpq_rings *rings;
  struct recjpq_open_ring open[RECJPQ_OPEN_MAX];
  uint8_t ring;                                  /* the open ring that is being enumerated */
  struct recjpq_visit visits[RECJPQ_VISITS_MAX]; /* the oldest is visits[n_visited % RECJPQ_VISITS_MAX] */
  size_t n_visited, n_begun;                     /* cells whose pieces have been added, and cells added */
  size_t n_before;                               /* n_begun when the ring began */
  struct recjpq_ring_group groups[2];
  unsigned current; /* the group being filled; the pieces of the other one are being prefetched */
  uint8_t *codes;   /* [M] */
  uint32_t passed[RECJPQ_GROUP_PIECES * PQ_PIECE_ITEMS]; /* of a group */
  size_t n_scored;                                       /* items of the group whose slots are being prefetched */
  struct recjpq_unchecked_item scored[RECJPQ_GROUP_PIECES * PQ_PIECE_ITEMS];
};

/* Begin with no cell in flight. The search and the rings are kept, not copied. Returns ERR_MEMORY. */
err_t recjpq_visits_init(struct recjpq_search *s, const struct recjpq_rings *rings, struct region *scratch,
                         struct recjpq_visits *out);

/* Visit the next ring of a pair, which ends at a level. The last cells stay in flight. */
void recjpq_visits_ring(struct recjpq_visits *v, struct recjpq_ring_pair *p, int end);

/* Visit the cells in flight. */
void recjpq_visits_finish(struct recjpq_visits *v);

#endif
