/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods that know a threshold share: one query's state, and the exhaustive scan. */
#ifndef ENGINE_RECJPQ_RECJPQ_SCAN_H
#define ENGINE_RECJPQ_RECJPQ_SCAN_H

#include <math.h>

#include "engine/recjpq/recjpq_deficits.h"

/* When to do what: sizes below which it does not pay. */
struct recjpq_rule {
  uint64_t warm_up_items_min; /* fewer are scanned in the time that a warm-up takes */
  uint64_t scan_items_max;    /* `exact`: up to so many, the scan is as fast at the median, and steadier */
  size_t slots_per_cell;      /* `exact`: a visited cell takes the time of scanning so many slots; 0: never scan */
};

extern const struct recjpq_rule recjpq_rule_usual;

enum { RECJPQ_ASKED_MAX = 64 };

/* One query of a batch. */
struct recjpq_search {
  const struct recjpq_columns *columns;
  const struct kernels *kernels;
  const float *subitem_scores;
  struct search_result *result;
  float floor; /* a score that K admitted items reach; -inf: none known */
  struct recjpq_deficits deficits;
  size_t n_tables; /* the scan filters by so many splits, those in which items lose most */
  size_t n_quiet;  /* blocks in a row of which hardly any item passed */
  size_t n_asked;
  uint32_t asked[RECJPQ_ASKED_MAX]; /* slots that passed and are not scored yet, while their codes are on the way */
};

/* Prepare a query: its floor by a warm-up over the cells, where there are items enough to pay for it, and its deficits
 * for that floor. The columns have at least one item. Returns ERR_MEMORY. */
err_t recjpq_search_init(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                         const struct recjpq_rule *rule, struct recjpq_search *out);

/* The least score that matters: the K-th best found, or the floor where that is higher. */
static inline float recjpq_threshold(const struct recjpq_search *s)
{
  return fmaxf(s->floor, topk_threshold(&s->result->topk));
}

/* An item that was found in a cell has a part, so only excluded keys are looked for. */
static inline bool recjpq_admit(const struct recjpq_search *s, uint32_t slot)
{
  return s->result->admit.n_excluded == 0 || admit_slot(&s->result->admit, slot);
}

/* Filter and score the items of the block that begins at slot `first`, a multiple of RECJPQ_BLOCK_ITEMS; there are
 * n_slots slots in all. Blocks are scanned in order; all items are scored when the last one was. */
void recjpq_scan_block(struct recjpq_search *s, size_t first, size_t n_slots);

/* Method `exact` by another rule than the usual one: for tests. */
err_t recjpq_search_exact_by(const struct recjpq_columns *c, struct search_batch *batch,
                             const struct recjpq_rule *rule);

#endif
