/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for more items like some: the mean of their parts becomes the query's data. All is of the epoch that is
 * searched. */
#ifndef ENGINE_LIKE_H
#define ENGINE_LIKE_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"

/* Have the items of a space data that a query can have, in host memory? */
bool like_is_possible(const struct space *space, const struct backends *backends);

/* Verify that a query may be like items of a space: it has no data of its own, and the items of the space have data
 * that a query can have, in host memory. Returns ERR_QUERY. */
err_t like_check(const struct query *query, const struct space *space, const struct backends *backends);

/* Replace `likes` of a query by data: the sum of weight * vector over the items that have one, divided by the sum of
 * their weights' magnitudes, in double and rounded once. Of a cosine space the vectors have length 1.
 *
 * out      a copy with that vector, and with the items among the excluded keys; in the region
 * answer   gets the keys of the other items, in the region
 * problem  NULL, or why there is no such query; then `out` is not set
 *
 * Returns ERR_MEMORY.
 */
err_t like_resolve(const struct arena *arena, size_t space, const struct query *query, struct region *region,
                   const struct query **out, struct answer *answer, const char **problem);

#endif
