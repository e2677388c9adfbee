/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that a query wants to see of its hits, as they are in the epoch that was searched. */
#ifndef ENGINE_HIT_ATTRIBUTES_H
#define ENGINE_HIT_ATTRIBUTES_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"

/* Limit on the memory that the attributes of one answer's hits take: 48 bytes for each value, and its texts. */
enum { HIT_ATTRIBUTES_BYTES_MAX = 16 << 20 };

/* Verify the names in a query's `attributes`; "*" alone means all. Returns ERR_QUERY. Thread: any. */
err_t hit_attributes_check(const struct query *query, const struct attributes *attributes);

/* Give the hits of an answer their values of the query's attributes.
 *
 * attributes  of the engine
 * region      of the values
 * answer      its hits know their slots
 * problem     set to NULL, or to why the query cannot be answered: then some hits have no attributes yet
 *
 * Returns ERR_MEMORY.
 */
err_t hit_attributes_copy(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                          struct region *region, struct answer *answer, const char **problem);

#endif
