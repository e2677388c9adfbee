/* Scoring of scattered items: slots are gathered until a tile of MOL_LANES is full, and scored for one query when the
 * next tile is full, whose items meanwhile come into cache. */
#ifndef ENGINE_MOL_SCORER_H
#define ENGINE_MOL_SCORER_H

#include "engine/mol_columns.h"

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

struct mol_scorer {
  const struct mol_columns *columns;
  const struct kernels *kernels;
  const struct mol_query *query;
  struct mol_tile *tile; /* may be shared: nothing stays in it between calls */
  struct topk *topk;
  float floor;               /* a score that K items are known to reach: -inf where there are none */
  uint32_t slots[MOL_LANES]; /* being gathered */
  size_t n;
  uint32_t waiting[MOL_LANES]; /* to be scored next */
  size_t n_waiting;
  uint64_t n_scored;
};

/* The least score that may still be among the K best. */
float mol_scorer_threshold(const struct mol_scorer *s);

/* Score an admitted item, now or later; each item once. */
void mol_scorer_add(struct mol_scorer *s, uint32_t slot);

/* Score what is left. */
void mol_scorer_flush(struct mol_scorer *s);

/* Score all items of a set, in order of slot for the memory's sake. */
void mol_scorer_add_set(struct mol_scorer *s, const struct slot_set *set);

#endif
