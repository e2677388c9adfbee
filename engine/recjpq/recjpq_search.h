/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one query of `exact`, `pqtopk` and the search of admitted items: its threshold, and what it has found.
 */
#ifndef ENGINE_RECJPQ_RECJPQ_SEARCH_H
#define ENGINE_RECJPQ_RECJPQ_SEARCH_H

#include <math.h>

#include "engine/recjpq/recjpq_deficits.h"
#include "engine/recjpq/recjpq_hits.h"
#include "engine/recjpq/recjpq_seen.h"
#include "engine/search/search_batch.h"

enum {
  RECJPQ_PENDING_MAX = 64,
  RECJPQ_TIES_MAX = 512, /* many, so that most are dropped when the threshold rises */
};

/* The search state of one query of a batch. */
struct recjpq_search {
  const struct recjpq_columns *columns;
  const struct kernels *kernels;
  const float *subitem_scores;
  struct search_result *result;
  bool admits_most; /* nearly all items that have a sub-item of `deficits.subitems` in each split are admitted */
  float floor;      /* at least the query's min_score, or a score that K admitted items reach */
  bool is_guess;    /* K items are only expected to reach the floor: see recjpq_guess.h */
  float expected;   /* what the floor will probably be at the end; -inf: unknown */
  float ceiling;    /* items that reach this were offered before; inf: none were */
  struct recjpq_deficits deficits;
  struct recjpq_seen seen;              /* the scan skips these items */
  size_t n_tables;                      /* the scan filters by this many splits: those in which items lose most */
  size_t n_quiet;                       /* consecutive blocks in which hardly any item passed the filter */
  size_t n_pending;                     /* slots */
  uint32_t pending[RECJPQ_PENDING_MAX]; /* passed the filter; scored once their codes are prefetched */
  struct recjpq_hits hits;              /* for large K: what was offered and is not in the heap yet */
  size_t n_ties;
  struct topk_entry ties[RECJPQ_TIES_MAX]; /* tied with the K-th best item found; not offered to the heap yet */
};

/* The lowest score that may still enter the top K: the K-th best score found, or the floor if that is higher. */
static inline float recjpq_threshold(const struct recjpq_search *s)
{
  return fmaxf(fmaxf(s->floor, s->hits.threshold), topk_threshold(&s->result->topk));
}

/* Offer an admitted item. For large K it waits in a list. For small K, items that tie with the K-th best one wait:
 * their keys decide, and reading those is slow. Items with the same codes tie, so there may be thousands. */
void recjpq_offer(struct recjpq_search *s, float score, uint32_t slot);

/* Offer the items that wait to the heap. It is not complete before that. */
void recjpq_offer_waiting(struct recjpq_search *s);

/* After items were offered: lower the limit of the deficits to the threshold. */
void recjpq_lower_limit(struct recjpq_search *s);

/* Is the item of this slot admitted? The item was found in a cell, so it has a part. */
static inline bool recjpq_admit(const struct recjpq_search *s, uint32_t slot)
{
  return s->result->admit.admits_parts || admit_slot(&s->result->admit, slot);
}

/* Is an item not excluded, and was it not seen by the rings? The filter's bits have admitted its slot. */
bool recjpq_is_candidate(const struct recjpq_search *s, uint32_t slot);

#endif
