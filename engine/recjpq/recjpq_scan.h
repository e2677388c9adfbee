/* SPDX-License-Identifier: Apache-2.0 */
/* What `exact` and `pqtopk` share: the state of one query, and the exhaustive scan. */
#ifndef ENGINE_RECJPQ_RECJPQ_SCAN_H
#define ENGINE_RECJPQ_RECJPQ_SCAN_H

#include <math.h>

#include "engine/recjpq/recjpq_deficits.h"

/* Catalogue sizes at which a search changes its strategy. */
struct recjpq_rule {
  uint64_t warm_up_items_min; /* with fewer items, a scan takes no longer than a warm-up */
  uint64_t scan_items_max;    /* `exact`: up to this many items a scan is as fast at the median, and steadier */
  size_t slots_per_cell;      /* `exact`: visiting a cell costs as much as scanning this many slots; 0: never scan */
};

extern const struct recjpq_rule recjpq_rule_usual;

enum { RECJPQ_PENDING_MAX = 64 };

/* The search state of one query of a batch. */
struct recjpq_search {
  const struct recjpq_columns *columns;
  const struct kernels *kernels;
  const float *subitem_scores;
  struct search_result *result;
  float floor; /* a score that K admitted items reach; -inf: none is known */
  struct recjpq_deficits deficits;
  size_t n_tables;                      /* the scan filters by this many splits: those in which items lose most */
  size_t n_quiet;                       /* consecutive blocks in which hardly any item passed the filter */
  size_t n_pending;                     /* slots */
  uint32_t pending[RECJPQ_PENDING_MAX]; /* passed the filter; scored once their codes are prefetched */
};

/* Prepare a query. If the catalogue is large enough, a warm-up over the cells finds a floor. Then compute the deficits
 * for that floor. The columns must have at least one item. Returns ERR_MEMORY. */
err_t recjpq_search_init(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                         const struct recjpq_rule *rule, struct recjpq_search *out);

/* The lowest score that may still enter the top K: the K-th best score found, or the floor if that is higher. */
static inline float recjpq_threshold(const struct recjpq_search *s)
{
  return fmaxf(s->floor, topk_threshold(&s->result->topk));
}

/* Is the item of this slot admitted? The item was found in a cell, so it has a part, and only excluded keys need a
 * check. */
static inline bool recjpq_admit(const struct recjpq_search *s, uint32_t slot)
{
  return s->result->admit.n_excluded == 0 || admit_slot(&s->result->admit, slot);
}

/* Filter and score the items of the block of slots that begins at `first`, a multiple of RECJPQ_BLOCK_ITEMS. There are
 * n_slots slots in all. Blocks that follow each other are scanned fastest. */
void recjpq_scan_block(struct recjpq_search *s, size_t first, size_t n_slots);

/* After the last block: score the items that are still pending. */
void recjpq_scan_end(struct recjpq_search *s);

/* Method `exact` with other sizes than the usual ones: for tests. */
err_t recjpq_search_exact_by(const struct recjpq_columns *c, struct search_batch *batch,
                             const struct recjpq_rule *rule);

#endif
