/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing and finding what an arena keeps of one space. A space can be opened beside an arena that is
 * searched, and put into it later. Thread: catalogue. */
#ifndef ENGINE_ARENA_SPACE_H
#define ENGINE_ARENA_SPACE_H

#include "engine/arena/arena.h"

/* Reserve the columns of a space that nobody has a part of.
 *
 * a                  gives capacity, lifetimes and backends, which must not change while the space is open
 * may_lose_a_backend if a backend fails, continue without it, as long as there is another
 *
 * Returns ERR_MEMORY or ERR_DEVICE. Give the space to arena_space_close() then too.
 */
err_t arena_space_open(const struct arena *a, const struct space *space, bool is_current, bool may_lose_a_backend,
                       struct arena_space *out);

/* The operations of columns_ops: on all backends; the last one on the backend that searches. Building an index may
 * return ERR_MEMORY.
 *
 * other  the same space in the other arena, which must not have changes that this one lacks, nor lack any
 */
void arena_space_defer_index(const struct arena *a, const struct arena_space *space);
err_t arena_space_build_index(const struct arena *a, const struct arena_space *space);
err_t arena_space_continue_index(const struct arena *a, const struct arena_space *space,
                                 const struct arena_space *other);
bool arena_space_has_index(const struct arena *a, const struct arena_space *space);

/* Find a generation of a space in an arena; generation 0: the current one. NULL: it has no such generation. */
const struct arena_space *arena_space_find(const struct arena *a, struct span name, uint32_t generation);

/* Free the columns, in the arena or not. The place becomes a hole. */
void arena_space_close(const struct arena *a, struct arena_space *space);

#endif
