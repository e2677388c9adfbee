/* SPDX-License-Identifier: Apache-2.0 */
/* The left-right scheme: who reads an arena, and when the writer may have it. */
#include "engine/arena/pair.h"

#include "base/clock.h"
#include "base/progress.h"

enum { POLL_NS = 20000 };

/* A search of a busy machine's lowest priority takes minutes. One that takes longer hangs. */
static const int64_t patience_ns = 600 * CLOCK_NS_PER_S;

const struct arena *pair_acquire(struct pair *p)
{
  for (;;) {
    unsigned front = atomic_load(&p->front);
    atomic_fetch_add(&p->readers[front].n, 1);
    if (atomic_load(&p->front) == front)
      return &p->arenas[front];
    /* The pair was flipped in between, and the writer may be waiting for this arena. */
    atomic_fetch_sub(&p->readers[front].n, 1);
  }
}

void pair_release(struct pair *p, const struct arena *a)
{
  atomic_fetch_sub(&p->readers[a - p->arenas].n, 1);
}

struct arena *pair_back(struct pair *p)
{
  return &p->arenas[1 - atomic_load(&p->front)];
}

const struct arena *pair_front(struct pair *p)
{
  return &p->arenas[atomic_load(&p->front)];
}

void pair_publish(struct pair *p)
{
  atomic_store(&p->front, 1 - atomic_load(&p->front));
}

void pair_wait_for_readers(struct pair *p)
{
  unsigned back = 1 - atomic_load(&p->front);
  int64_t end_ns = clock_now_ns() + patience_ns;

  while (atomic_load(&p->readers[back].n) != 0) {
    if (clock_now_ns() < end_ns)
      progress_note();
    clock_sleep_ns(POLL_NS);
  }
}
