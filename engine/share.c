/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of steps, and the exchange of floors. */
#include "engine/share.h"

static void raise_floor(_Atomic float *floor, float score)
{
  float old = atomic_load_explicit(floor, memory_order_relaxed);

  while (old < score && !atomic_compare_exchange_weak_explicit(floor, &old, score, memory_order_relaxed,
                                                               memory_order_relaxed))
    ;
}

static void exchange_floors(struct search_batch *batch)
{
  for (size_t q = 0; q < batch->n; q++) {
    struct search_result *result = &batch->results[q];
    float own = share_threshold(result);
    float known = atomic_load_explicit(&batch->share->floors[q], memory_order_relaxed);
    if (own > known)
      raise_floor(&batch->share->floors[q], own);
    result->floor = fmaxf(own, known);
  }
}

/* Claim steps of a search that members share. Returns the first one. */
static size_t claim_shared(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each)
{
  struct share *share = batch->share;

  if (batch->member == 0)
    team_recruit(&share->search);
  else
    team_give_way(&share->search, &share->n_claimed[job], n_steps);
  exchange_floors(batch);
  size_t first = atomic_fetch_add(&share->n_claimed[job], n_each);
  if (first >= n_steps)
    team_wake(&share->search);
  return first;
}

void share_abandon(struct share *share)
{
  for (size_t job = 0; job < SHARE_JOBS; job++)
    atomic_store(&share->n_claimed[job], SIZE_MAX / 2); /* no job has as many steps, and claims still add to it */
  team_wake(&share->search);
}

bool share_claim(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each, struct share_steps *out)
{
  size_t first;

  if (batch->member == 0 && batch->pause && batch->pause->call)
    batch->pause->call(batch->pause->context);
  if (batch->share) {
    n_each = batch->share->steps_one_by_one ? 1 : n_each;
    first = claim_shared(batch, job, n_steps, n_each);
  } else {
    first = batch->n_claimed[job];
    batch->n_claimed[job] += n_each;
  }
  if (first >= n_steps)
    return false;
  *out = (struct share_steps){ first, n_steps - first < n_each ? n_steps : first + n_each };
  return true;
}
