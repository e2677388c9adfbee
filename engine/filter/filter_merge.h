/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of an `and` that speak of the same attribute become fewer: each operand costs a pass over a column. */
#ifndef ENGINE_FILTER_FILTER_MERGE_H
#define ENGINE_FILTER_FILTER_MERGE_H

#include "base/region.h"
#include "engine/filter/filter.h"

/* Intersect ranges of the same attribute, and drop has(x) beside a comparison of x.
 *
 * operands  [*n] of an `and`, none of which is a constant or an `and`; those that are left come first, in their order
 * is_none   set to true if two ranges have nothing in common: the `and` is never true
 *
 * Returns ERR_OK; ERR_MEMORY.
 */
err_t filter_merge(const struct filter_node **operands, size_t *n, struct region *region, bool *is_none);

#endif
