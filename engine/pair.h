/* SPDX-License-Identifier: Apache-2.0 */
/* The arena pair: two arenas, one in front (searched, never written) and one behind (written, never searched).
 *
 * The left-right scheme: an atomic index of the front one and a count of readers of each. A reader counts itself in,
 * then looks again whether the arena is still in front; the writer flips the index, then waits until the former front
 * has no readers. Sequentially consistent order makes sure that one of them sees the other. Readers never wait.
 */
#ifndef ENGINE_PAIR_H
#define ENGINE_PAIR_H

#include <stdatomic.h>

#include "engine/arena.h"

struct pair {
  struct arena arenas[2];
  _Atomic unsigned front;
  struct {
    _Alignas(64) _Atomic unsigned n; /* a cache line each: readers of one do not slow readers of the other */
  } readers[2];
};

/* Enter and leave the front arena. Thread: any. Blocks: no. */
const struct arena *pair_acquire(struct pair *p);
void pair_release(struct pair *p, const struct arena *a);

/* The back arena. Thread: the writer. */
struct arena *pair_back(struct pair *p);

/* Make the back arena the front one: the epochs flip here. Thread: the writer. Blocks: no. */
void pair_publish(struct pair *p);

/* Wait until nobody reads the back arena, so that it may be written. Thread: the writer. Blocks: until the last search
 * that began before the flip ends. */
void pair_wait_for_readers(struct pair *p);

#endif
