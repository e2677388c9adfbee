/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of steps, and the exchange of floors. */
#include "engine/search/share.h"

#include "base/size.h"

static void raise_floor(_Atomic float *floor, float score)
{
  float old = atomic_load_explicit(floor, memory_order_relaxed);

  while (old < score &&
         !atomic_compare_exchange_weak_explicit(floor, &old, score, memory_order_relaxed, memory_order_relaxed))
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

/* How many steps to claim if `left` are not claimed? If there are many claims, the last ones are smaller, so that
 * members end at about the same time. */
static size_t choose_n(const struct search_batch *batch, size_t n_steps, size_t n_each, size_t left)
{
  size_t n_members = share_members_max(batch);

  if (batch->share->steps_one_by_one)
    return 1;
  if (n_each < n_steps / n_members)
    n_each = size_max(size_min(n_each, left / (2 * n_members)), 1);
  return size_min(n_each, left);
}

/* Claim steps of a search that members share. */
static bool claim_shared(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each, struct share_steps *out)
{
  struct share *share = batch->share;
  _Atomic size_t *n_claimed = &share->n_claimed[job];

  if (batch->member == 0)
    team_recruit(&share->search);
  else
    team_give_way(&share->search, n_claimed, n_steps);
  exchange_floors(batch);
  size_t first = atomic_load(n_claimed);
  while (first < n_steps) {
    size_t n = choose_n(batch, n_steps, n_each, n_steps - first);
    *out = (struct share_steps){ first, first + n };
    if (atomic_compare_exchange_weak(n_claimed, &first, first + n))
      return true;
  }
  team_wake(&share->search);
  return false;
}

/* Claim steps of a search that one member does. */
static bool claim_alone(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each, struct share_steps *out)
{
  size_t first = batch->n_claimed[job], end = size_min(first + n_each, n_steps);

  if (first >= n_steps)
    return false;
  *out = (struct share_steps){ first, end };
  batch->n_claimed[job] = end;
  return true;
}

void share_abandon(struct share *share)
{
  for (size_t job = 0; job < SHARE_JOBS; job++)
    atomic_store(&share->n_claimed[job], SIZE_MAX);
  team_wake(&share->search);
}

bool share_claim(struct search_batch *batch, size_t job, size_t n_steps, size_t n_each, struct share_steps *out)
{
  if (batch->member == 0 && batch->pause && batch->pause->call)
    batch->pause->call(batch->pause->context);
  return batch->share ? claim_shared(batch, job, n_steps, n_each, out) : claim_alone(batch, job, n_steps, n_each, out);
}
