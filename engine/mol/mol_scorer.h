/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the K best of scattered items. Items are gathered into tiles of MOL_LANES. A full tile is scored when the next
 * one is full, so that its items have been prefetched. Callers that do much between two items have each prefetched as
 * it is added.
 *
 * If the caller wants it and the machine can screen items (mol_screening.h), most items end there: they cannot reach
 * the threshold. Those that pass are gathered into tiles once more. That pays for many items; a few thousand candidates
 * are mostly added before the threshold is high.
 *
 * If this machine can bound scores more cheaply than compute them (mol_tile_bound()), items are bounded first. The K-th
 * best lower bound is a score that K items reach. Only items whose upper bound reaches it are kept, as deferred items.
 * At the end, the deferred items whose upper bound still reaches the threshold are scored.
 */
#ifndef ENGINE_MOL_MOL_SCORER_H
#define ENGINE_MOL_MOL_SCORER_H

#include "engine/mol/mol_screening.h"
#include "engine/search/kth_best.h"
#include "engine/search/search_batch.h"

/* An item that has been bounded but not scored. */
struct mol_deferred {
  uint32_t slot;
  float upper; /* upper bound on its score */
};

struct mol_scorer {
  const struct mol_columns *columns;
  const struct kernels *kernels;
  const struct mol_query *query;
  struct mol_tile *tile; /* may be shared: its contents are not used after a call returns */
  struct search_result *result;
  float floor;               /* no item below it is wanted, see mol_exact.h; at first that of the result */
  bool prefetches_each;      /* set by the caller: prefetch each item as it is added; a full tile does not wait */
  uint32_t slots[MOL_LANES]; /* gathered for the next tile */
  size_t n;
  uint32_t waiting[MOL_LANES]; /* a full tile, prefetched, to be scored next */
  size_t n_waiting;
  struct kth_best lowers; /* of the lower bounds */
  struct mol_deferred *deferred;
  size_t n_deferred;
  size_t n_deferred_max;           /* 0: this machine or model has no bounds */
  struct mol_trial bounds;         /* keeps the items that are deferred */
  struct mol_screening *screening; /* set by the caller; NULL: items are not screened */
  uint32_t passed[MOL_LANES];      /* items that passed the screen, gathered for a tile */
  size_t n_passed;
  uint64_t n_added, n_scored;
};

/* Prepare to score items for query q of a batch, into its heap. Returns ERR_MEMORY. */
err_t mol_scorer_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                      struct mol_scorer *out);

/* The lowest score that may still be among the K best. */
float mol_scorer_threshold(const struct mol_scorer *s);

/* Add an admitted item: it is scored now or later, or skipped if it cannot enter the top K. Add each item once. */
void mol_scorer_add(struct mol_scorer *s, uint32_t slot);

/* Add all items of a set (base/bits.h), then flush. They are added in slot order, which suits memory access. */
void mol_scorer_add_set(struct mol_scorer *s, const uint64_t *set, size_t n_words);

/* Should the next n_items items be screened first? If so, they are counted as screened. For callers that load tiles
 * themselves. */
bool mol_scorer_choose_screen(struct mol_scorer *s, size_t n_items);

/* Screen n <= MOL_LANES items and add those that pass, now or later. Items that the query does not admit are skipped.
 *
 * slots  [n]
 * words  from mol_screen_items()
 * gates  [L][MOL_LANES]
 */
void mol_scorer_screen(struct mol_scorer *s, const uint32_t *slots, size_t n, const uint32_t *words,
                       const float *gates);

/* Should the next n_items items be bounded first? If so, they are counted as bounded. For callers that load tiles
 * themselves. */
bool mol_scorer_choose_bounds(struct mol_scorer *s, size_t n_items);

/* Add n items whose bounds are in a tile. Items that the query does not admit are skipped. slots [n]. */
void mol_scorer_add_bounded(struct mol_scorer *s, const uint32_t *slots, size_t n, const struct mol_tile *tile);

/* Score all items that were added and may still enter the top K. */
void mol_scorer_flush(struct mol_scorer *s);

/* After a flush: discard the hits. Their K-th best score remains as the floor, and the counters remain. */
void mol_scorer_forget(struct mol_scorer *s);

#endif
