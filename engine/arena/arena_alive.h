/* SPDX-License-Identifier: Apache-2.0 */
/* The items of an arena that are alive: neither expired nor embargoed at the epoch's time. Their bits are kept for each
 * space as slots are written and as time passes, so that a search needs no further step.
 *
 * Each function does nothing if the configuration names no lifetimes. Thread: the owner of the back arena.
 */
#ifndef ENGINE_ARENA_ALIVE_H
#define ENGINE_ARENA_ALIVE_H

#include "engine/arena/arena.h"

/* Note that parts or attributes of a slot have been written, moved or dropped. */
void arena_alive_look(struct arena *a, uint32_t slot);

/* The same for all slots, which have been loaded. arena_alive_advance() completes it. */
void arena_alive_look_at_all(struct arena *a);

/* Set the arena's time, which is not earlier than before. Returns whether an item has expired or come out of its
 * embargo since then. */
bool arena_alive_advance(struct arena *a, int64_t time_ms);

#endif
