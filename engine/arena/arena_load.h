/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an empty arena: many new items at once, from several threads, each in the slot that the caller names. Much
 * faster than arena_apply(): no key is looked up, and what is derived from all items is built once, at the end.
 *
 * Thread: the one that begins also finishes. In between any thread, several at once.
 */
#ifndef ENGINE_ARENA_LOAD_H
#define ENGINE_ARENA_LOAD_H

#include <pthread.h>

#include "engine/arena/arena.h"

struct arena_load {
  struct arena *arena;
  pthread_mutex_t lock; /* for columns that one thread at a time may load */
  _Atomic size_t end;   /* no item has been put into this slot or a higher one */
};

/* Begin to load an arena that arena_init() has made. */
void arena_load_begin(struct arena *a, struct arena_load *out);

/* Put changes[i] into slot first + i. In the end every slot from 0 on must have been put once. All keys differ, and all
 * changes are puts. Calls at the same time must be for different blocks of LOAD_BLOCK_SLOTS slots. Returns ERR_FULL,
 * ERR_MEMORY or ERR_DEVICE. */
err_t arena_load_put(struct arena_load *l, size_t first, const struct prepared_change *changes, size_t n);

/* Copy the items of the n-th block of LOAD_BLOCK_SLOTS slots of an arena, which may be searched meanwhile. */
err_t arena_load_copy(struct arena_load *l, const struct arena *from, size_t block);

/* After an error: the arena can only be given to arena_fini(). */
void arena_load_abandon(struct arena_load *l);

/* Complete the arena: after this it can be searched and changed. */
err_t arena_load_finish(struct arena_load *l);

#endif
