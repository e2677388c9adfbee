/* SPDX-License-Identifier: Apache-2.0 */
/* The K best of a stream of scored items: a heap whose root is the worst one kept.
 *
 * The order is total: higher scores first, equal scores in the order of the items' keys, which the caller compares. So
 * the result does not depend on the order of arrival. An item is pushed at most once.
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

/* Order of the keys of two different slots: <0 when a comes first. */
typedef int (*topk_key_order)(const void *context, uint32_t a, uint32_t b);

/* The order of slots, for scores whose slots do not matter. */
int topk_by_slot(const void *context, uint32_t a, uint32_t b);

struct topk {
  struct topk_entry *heap; /* [capacity], the caller's */
  size_t n;
  size_t k;
  topk_key_order order;
  const void *context;
};

/* k >= 1; heap has room for k entries. */
void topk_init(struct topk *t, struct topk_entry *heap, size_t k, topk_key_order order, const void *context);

/* The least score that may still enter: the K-th best so far, -inf below K. An item that scores just this enters if
 * its key comes first. */
float topk_threshold(const struct topk *t);

/* Offer an item. score must not be NaN. */
void topk_push(struct topk *t, float score, uint32_t slot);

/* Sort the kept entries best first, in place; the heap is one no more. Returns how many. */
size_t topk_finish(struct topk *t);

#endif
