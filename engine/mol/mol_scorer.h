/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the K best of scattered items. Items are gathered into tiles of MOL_LANES. A full tile is scored when the next
 * one is full, so that its items have been prefetched.
 *
 * If this machine can bound scores more cheaply than compute them (mol_tile_bound()), items are bounded first. The K-th
 * best lower bound is a score that K items reach. Only items whose upper bound reaches it are kept, as deferred items.
 * At the end, the deferred items whose upper bound still reaches the threshold are scored.
 */
#ifndef ENGINE_MOL_MOL_SCORER_H
#define ENGINE_MOL_MOL_SCORER_H

#include "engine/mol/mol_tile.h"

/* A set of slots, as a bitmap. */
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

size_t slot_set_count(const struct slot_set *set);

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
  float floor;               /* a score that K items are known to reach; -inf if none is known */
  uint32_t slots[MOL_LANES]; /* gathered for the next tile */
  size_t n;
  uint32_t waiting[MOL_LANES]; /* a full tile, prefetched, to be scored next */
  size_t n_waiting;
  struct topk lowers; /* the K best lower bounds */
  struct mol_deferred *deferred;
  size_t n_deferred;
  size_t n_deferred_max;       /* 0: this machine or model has no bounds */
  size_t n_bounded, n_reached; /* in the current trial: items bounded; those of them that were deferred */
  size_t n_until_bounds;       /* items to score without bounds, because bounds did not pay */
  uint64_t n_added, n_scored;
};

/* Prepare to score items for query q of a batch, into its heap. Returns ERR_MEMORY. */
err_t mol_scorer_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                      struct mol_scorer *out);

/* The lowest score that may still be among the K best. */
float mol_scorer_threshold(const struct mol_scorer *s);

/* Add an admitted item: it is scored now or later, or skipped if it cannot enter the top K. Add each item once. */
void mol_scorer_add(struct mol_scorer *s, uint32_t slot);

/* Add all items of a set, then flush. They are added in slot order, which suits memory access. */
void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set);

/* Should the next n_items items be bounded first? If so, they are counted as bounded. For callers that load tiles
 * themselves. */
bool mol_scorer_choose_bounds(struct mol_scorer *s, size_t n_items);

/* Add the n items of slots first..first+n-1, whose bounds are in a tile. Items that the query does not admit are
 * skipped. */
void mol_scorer_add_bounded(struct mol_scorer *s, uint32_t first, size_t n, const struct mol_tile *tile);

/* Score all items that were added and may still enter the top K. */
void mol_scorer_flush(struct mol_scorer *s);

/* After a flush: discard the hits. Their K-th best score remains as the floor, and the counters remain. */
void mol_scorer_forget(struct mol_scorer *s);

#endif
