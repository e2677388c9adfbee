/* SPDX-License-Identifier: Apache-2.0 */
/* The best items of a search for many: a list that is cut down to the K best scores now and then. A push onto a heap
 * costs the logarithm of K and branches that no processor can predict; adding to a list costs neither.
 *
 * Thread: the one that owns it. */
#ifndef ENGINE_RECJPQ_RECJPQ_HITS_H
#define ENGINE_RECJPQ_RECJPQ_HITS_H

#include "engine/search/kth_best.h"
#include "kernels/topk.h"

struct recjpq_hits {
  struct topk_entry *entries; /* [capacity]; NULL: there is no list */
  size_t n, k, capacity;
  size_t cut_at;       /* cut when there are so many */
  float threshold;     /* K of the entries that were added reach it; -inf until the first cut */
  struct kth_best kth; /* scratch memory of cuts */
};

/* The entries live in the region. Returns ERR_MEMORY. */
err_t recjpq_hits_init(size_t k, struct region *region, struct recjpq_hits *out);

/* Keep the entries that reach the K-th best score. If ties leave no room for others, all go to `out`. */
void recjpq_hits_cut(struct recjpq_hits *h, struct topk *out);

/* Give all entries that may be among the K best to `out`. The list is empty then. */
void recjpq_hits_give(struct recjpq_hits *h, struct topk *out);

static inline void recjpq_hits_add(struct recjpq_hits *h, float score, uint32_t slot, struct topk *out)
{
  h->entries[h->n++] = (struct topk_entry){ score, slot };
  if (h->n == h->cut_at)
    recjpq_hits_cut(h, out);
}

#endif
