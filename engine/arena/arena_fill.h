/* SPDX-License-Identifier: Apache-2.0 */
/* Filling an empty arena: many new items at once, from several threads, each in the slot that the caller names. Much
 * faster than arena_apply(): no key is looked up, and what is derived from all items is built once, at the end.
 *
 * Thread: the one that begins also finishes. In between any thread, several at once.
 */
#ifndef ENGINE_ARENA_FILL_H
#define ENGINE_ARENA_FILL_H

#include <pthread.h>

#include "engine/arena/arena.h"

struct arena_fill {
  struct arena *arena;
  pthread_mutex_t lock;   /* for columns that one thread at a time may fill */
  _Atomic size_t n_items; /* items put so far */
  _Atomic size_t end;     /* no item has been put into this slot or a higher one */
};

/* Begin to fill an arena that arena_init() has made. */
void arena_fill_begin(struct arena *a, struct arena_fill *out);

/* Put changes[i] into slot first + i. In the end every slot from 0 on must have been put once. All keys differ, and all
 * changes are puts. Calls at the same time must be for different blocks of COLUMNS_FILL_SLOTS slots. Returns ERR_FULL,
 * ERR_MEMORY or ERR_DEVICE. */
err_t arena_fill_put(struct arena_fill *f, size_t first, const struct prepared_change *changes, size_t n);

/* Copy the items of the n-th block of COLUMNS_FILL_SLOTS slots of an arena, which may be searched meanwhile. */
err_t arena_fill_copy(struct arena_fill *f, const struct arena *from, size_t block);

/* After an error: the arena can only be given to arena_fini(). */
void arena_fill_abandon(struct arena_fill *f);

/* Complete the arena: after this it can be searched and changed. */
err_t arena_fill_finish(struct arena_fill *f);

#endif
