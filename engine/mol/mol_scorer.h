/* SPDX-License-Identifier: Apache-2.0 */
/* The K best of scattered items: slots are gathered until a tile of MOL_LANES is full, whose turn is when the next tile
 * is full, whose items meanwhile come into cache.
 *
 * Where the machine bounds scores for less than the scores (mol_tile_bound()), that comes first. The K-th best of the
 * lower bounds is a score that K items reach, so that only items whose upper bound reaches it are kept for later; and
 * of those, what still does at the end is scored.
 */
#ifndef ENGINE_MOL_MOL_SCORER_H
#define ENGINE_MOL_MOL_SCORER_H

#include "engine/mol/mol_columns.h"

/* A set of slots. */
struct slot_set {
  uint64_t *words;
  size_t n_words;
};

err_t slot_set_init(size_t n_slots, struct region *region, struct slot_set *out);

static inline bool slot_set_has(const struct slot_set *set, uint32_t slot)
{
  return set->words[slot / 64] >> slot % 64 & 1;
}

static inline void slot_set_add(struct slot_set *set, uint32_t slot)
{
  set->words[slot / 64] |= 1ull << slot % 64;
}

/* An item that is kept for later. */
struct mol_late {
  uint32_t slot;
  float upper; /* no less than its score */
};

struct mol_scorer {
  const struct mol_columns *columns;
  const struct kernels *kernels;
  const struct mol_query *query;
  struct mol_tile *tile; /* may be shared: nothing stays in it between calls */
  struct search_result *result;
  float floor;               /* a score that K items are known to reach: -inf where there are none */
  uint32_t slots[MOL_LANES]; /* being gathered */
  size_t n;
  uint32_t waiting[MOL_LANES]; /* come next */
  size_t n_waiting;
  struct topk lowers; /* the K best lower bounds */
  struct mol_late *late;
  size_t n_late, n_late_max;   /* 0: this machine or model has no bounds */
  size_t n_bounded, n_reached; /* in the current stretch of items; how many were kept for later */
  size_t n_until_bounds;       /* items to be scored without: bounds did not pay */
  uint64_t n_added, n_scored;
};

/* Score for query q of a batch, into its heap. Returns ERR_MEMORY. */
err_t mol_scorer_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                      struct mol_scorer *out);

/* The least score that may still be among the K best. */
float mol_scorer_threshold(const struct mol_scorer *s);

/* Score an admitted item, now or later, unless it cannot enter; each item once. */
void mol_scorer_add(struct mol_scorer *s, uint32_t slot);

/* Add all items of a set, in order of slot for the memory's sake, and flush. */
void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set);

/* Whether the next n_items items should have bounds first; they then count as having them. For those who have items in
 * a tile already. */
bool mol_scorer_take_bounds(struct mol_scorer *s, size_t n_items);

/* The same for the n items of slots first and on, whose bounds are in a tile; not all need be admitted. */
void mol_scorer_add_bounded(struct mol_scorer *s, uint32_t first, size_t n, const struct mol_tile *tile);

/* Have done with all items that were added. */
void mol_scorer_flush(struct mol_scorer *s);

/* After a flush: forget all items but the floor that they gave, and their count. */
void mol_scorer_forget(struct mol_scorer *s);

#endif
