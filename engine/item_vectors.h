/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of items, read from the columns of the first backend that can tell: those of a GPU alone cannot. */
#ifndef ENGINE_ITEM_VECTORS_H
#define ENGINE_ITEM_VECTORS_H

#include "engine/arena/arena.h"

/* Refuse a field of a query that needs the vectors of a space's items, if they are in the memory of a GPU only. Returns
 * ERR_QUERY. Thread: any. */
err_t item_vectors_check(const struct space *space, const struct backends *backends, const char *field);

/* Can the vectors of a space's items be read? */
bool item_vectors_can_be_read(const struct space *space, const struct backends *backends);

/* Read the vector of a slot that has a part. It lives in the region. Returns ERR_MEMORY. Thread: one that holds the
 * arena. */
err_t item_vectors_read(const struct arena *arena, const struct arena_space *space, uint32_t slot,
                        struct region *region, struct floats *out);

#endif
