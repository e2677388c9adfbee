/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for more items like one: its part becomes the query's data. All is of the epoch that is searched. */
#ifndef ENGINE_LIKE_H
#define ENGINE_LIKE_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"

/* Have the items of a space data that a query can have, in host memory? */
bool like_is_possible(const struct space *space, const struct backends *backends);

/* Verify that a query may be like an item of a space: it has no data of its own, and the items of the space have data
 * that a query can have, in host memory. Returns ERR_QUERY. */
err_t like_check(const struct query *query, const struct space *space, const struct backends *backends);

/* Replace `like` of a query by data.
 *
 * out      a copy with the item's data, and with the item among the excluded keys; in the region
 * problem  NULL, or why there is no such query; then `out` is not set
 *
 * Returns ERR_MEMORY.
 */
err_t like_resolve(const struct arena *arena, size_t space, const struct query *query, struct region *region,
                   const struct query **out, const char **problem);

#endif
