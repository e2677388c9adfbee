/* SPDX-License-Identifier: Apache-2.0 */
/* The spaces of an engine, and their places in the arenas. A space keeps its place as long as it is there. A removed
 * one leaves a hole, which the next one fills.
 *
 * Thread: catalogue, and the threads of engine_replace() while they feed. Others look at the arenas, whose table of
 * spaces flips with the epoch.
 */
#ifndef ENGINE_SPACE_TABLE_H
#define ENGINE_SPACE_TABLE_H

#include "engine/arena/space.h"

struct space_entry {
  struct space *space; /* NULL: a hole */
  bool is_current;     /* of the generations of its name: queries that name none get it */
};

struct space_table {
  struct space_entry *entries; /* [capacity] */
  size_t capacity;
  size_t n; /* places in use, holes between them too */
  size_t next_number;
};

/* Stands for a place that does not exist. */
#define SPACE_TABLE_NONE SIZE_MAX

/* Returns ERR_MEMORY. */
err_t space_table_init(size_t capacity, struct space_table *out);

/* Free the table and the spaces in it. */
void space_table_fini(struct space_table *t);

/* Find a place for one more space: a hole, or the place after the last one. Returns SPACE_TABLE_NONE if the table is
 * full. */
size_t space_table_room(const struct space_table *t);

/* Put a space into a place, and number it. From now on the table owns it, and frees it with mem_free(). */
void space_table_put(struct space_table *t, size_t place, struct space *space, bool is_current);

/* Leave a hole. The caller gets the space. */
struct space *space_table_take(struct space_table *t, size_t place);

/* Find a generation, or the current one (0). */
size_t space_table_find(const struct space_table *t, struct span name, uint32_t generation);

/* Find the next space that uses parts of this name, in this place or a later one. A name without a generation means the
 * first. */
size_t space_table_next_user(const struct space_table *t, struct span part_name, size_t from);

#endif
