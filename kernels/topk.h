/* SPDX-License-Identifier: Apache-2.0 */
/* The K best of a stream of scored items: a heap with the worst kept item at its root.
 *
 * Higher scores come first. Ties are ordered by the items' keys; the caller compares those. So the order is total, and
 * the result does not depend on the order of arrival. Push an item at most once.
 *
 * Thread: the one that owns it. Allocates: no.
 */
#ifndef KERNELS_TOPK_H
#define KERNELS_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct topk_entry {
  float score;
  uint32_t slot;
};

/* Compare the keys of two different slots: below 0 if a's comes first. */
typedef int (*topk_key_order)(const void *context, uint32_t a, uint32_t b);

struct topk {
  struct topk_entry *heap; /* [k], borrowed from the caller; a heap once there are k entries */
  size_t n;
  size_t k;
  topk_key_order order;
  const void *context;
};

/* Initialise an empty heap.
 *
 * heap  room for k entries, borrowed while `t` is used
 * k     at least 1 */
void topk_init(struct topk *t, struct topk_entry *heap, size_t k, topk_key_order order, const void *context);

/* Return the threshold: the K-th best score so far, -inf while fewer than K items are kept. An item with just this
 * score enters if its key comes first. */
float topk_threshold(const struct topk *t);

/* Offer an item. `score` must not be NaN. */
void topk_push(struct topk *t, float score, uint32_t slot);

/* Sort the kept entries in place, best first. Returns how many. Push no more after that. */
size_t topk_finish(struct topk *t);

#endif
