/* SPDX-License-Identifier: Apache-2.0 */
/* Positions under a lock, and comparing them with those that a query wants. */
#include "daemon/seen/seen_progress.h"

#include <stdio.h>

#include "base/mem.h"

void seen_progress_init(struct seen_progress *p)
{
  *p = (struct seen_progress){ .n = 0 };
  pthread_mutex_init(&p->mutex, NULL);
}

void seen_progress_fini(struct seen_progress *p)
{
  mem_free(&p->partitions);
  pthread_mutex_destroy(&p->mutex);
}

void seen_progress_lock(struct seen_progress *p)
{
  pthread_mutex_lock(&p->mutex);
}

void seen_progress_unlock(struct seen_progress *p)
{
  pthread_mutex_unlock(&p->mutex);
}

void seen_progress_note_change(struct seen_progress *p)
{
  atomic_fetch_add(&p->version, 1);
}

err_t seen_progress_resize(struct seen_progress *p, size_t n)
{
  TRY(mem_grow(n, sizeof *p->partitions, &p->capacity, &p->partitions));
  for (size_t i = p->n; i < n; i++)
    p->partitions[i] = (struct seen_partition){ .end = -1 };
  p->n = n;
  return ERR_OK;
}

void seen_progress_forget(struct seen_progress *p)
{
  seen_progress_lock(p);
  atomic_store(&p->has_caught_up, false);
  for (size_t i = 0; i < p->n; i++)
    p->partitions[i] = (struct seen_partition){ .end = -1 };
  seen_progress_note_change(p);
  seen_progress_unlock(p);
}

void seen_progress_set_caught_up(struct seen_progress *p, bool has_caught_up)
{
  seen_progress_lock(p);
  atomic_store(&p->has_caught_up, has_caught_up);
  seen_progress_note_change(p);
  seen_progress_unlock(p);
}

void seen_progress_set_problem(struct seen_progress *p, const char *problem)
{
  seen_progress_lock(p);
  snprintf(p->problem, sizeof p->problem, "%s", problem);
  seen_progress_note_change(p);
  seen_progress_unlock(p);
}

static int64_t next_of(const struct seen_progress *p, int32_t partition)
{
  return partition >= 0 && (size_t)partition < p->n ? p->partitions[partition].next : -1;
}

bool seen_progress_find_missing(struct seen_progress *p, const struct position *positions, size_t n,
                                struct position *wanted, int64_t *have)
{
  bool is_missing = false;

  pthread_mutex_lock(&p->mutex);
  for (size_t i = 0; i < n && !is_missing; i++) {
    *wanted = positions[i];
    *have = next_of(p, wanted->partition);
    is_missing = wanted->next > 0 && *have < wanted->next;
  }
  pthread_mutex_unlock(&p->mutex);
  return is_missing;
}

bool seen_progress_has_reached(struct seen_progress *p, const struct position *positions, size_t n)
{
  struct position wanted;
  int64_t have;

  if (!atomic_load(&p->has_caught_up))
    return false;
  return n == 0 || !seen_progress_find_missing(p, positions, n, &wanted, &have);
}
