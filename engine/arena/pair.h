/* SPDX-License-Identifier: Apache-2.0 */
/* The arena pair. The front arena is searched and never written. The back arena is written and never searched.
 *
 * This is the left-right scheme: an atomic index of the front arena, and a count of readers for each arena. A reader
 * increments the count of the front arena, then checks that this arena is still in front. The writer flips the index,
 * then waits until the former front arena has no readers. Because all operations are sequentially consistent, at least
 * one of the two sees the other. Readers never wait.
 */
#ifndef ENGINE_PAIR_H
#define ENGINE_PAIR_H

#include <stdatomic.h>

#include "engine/arena/arena.h"

struct pair {
  struct arena arenas[2];
  _Atomic unsigned front;
  struct { /* one cache line each, so that readers of one arena do not slow readers of the other */
    _Alignas(64) _Atomic unsigned n;
  } readers[2];
};

/* Enter the front arena and leave it again. Thread: any. Blocks: no. */
const struct arena *pair_acquire(struct pair *p);
void pair_release(struct pair *p, const struct arena *a);

/* Return the back arena. Thread: the writer. */
struct arena *pair_back(struct pair *p);

/* Return the front arena, to read what the writer itself has published. Thread: the writer. */
const struct arena *pair_front(struct pair *p);

/* Flip the pair: the back arena becomes the front arena. Thread: the writer. Blocks: no. */
void pair_publish(struct pair *p);

/* Wait until nobody reads the back arena, so that it can be written. Thread: the writer. Blocks: until the last search
 * that began before the flip ends. */
void pair_wait_for_readers(struct pair *p);

#endif
