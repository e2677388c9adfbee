/* SPDX-License-Identifier: Apache-2.0 */
/* The K-th best of a stream of scores. Scores are gathered, and cut down to the K best now and then. That takes
 * constant time for each; a heap takes the logarithm of K. Among the gathered scores there is no NaN, which would spoil
 * the cut: kth_best_add() drops it.
 *
 * Thread: the one that owns it. */
#ifndef ENGINE_KTH_BEST_H
#define ENGINE_KTH_BEST_H

#include <math.h>

#include "base/region.h"

struct kth_best {
  float *scores; /* [capacity] */
  float *spare;  /* [capacity], scratch */
  size_t n, k, capacity;
  float threshold; /* K scores reach it; -inf until K scores have been cut */
};

/* The scores live in the region. Returns ERR_MEMORY. */
err_t kth_best_init(size_t k, struct region *region, struct kth_best *out);

/* Forget all scores. From now on find the k-th best; k is at most that of the beginning. */
static inline void kth_best_restart(struct kth_best *b, size_t k)
{
  b->n = 0;
  b->k = k;
  b->threshold = -INFINITY;
}

/* Raise the threshold to the K-th best score so far, if there are K. */
void kth_best_cut(struct kth_best *b);

static inline void kth_best_add(struct kth_best *b, float score)
{
  if (!(score > b->threshold)) /* also for NaN */
    return;
  b->scores[b->n++] = score;
  if (b->n == b->capacity)
    kth_best_cut(b);
}

/* For lower bounds on scores, which are a threshold at once: cut as soon as there are K, and then whenever there are
 * n_more beyond K. A threshold that lags lets more items pass. */
static inline void kth_best_add_bound(struct kth_best *b, float bound, size_t n_more)
{
  size_t n_waiting = b->threshold == -INFINITY ? 0 : n_more;

  kth_best_add(b, bound);
  if (b->n >= b->k + n_waiting)
    kth_best_cut(b);
}

#endif
