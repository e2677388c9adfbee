/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of one comparison: an attribute, an op and values. */
#ifndef ENGINE_FILTER_FILTER_LEAF_H
#define ENGINE_FILTER_FILTER_LEAF_H

#include "engine/filter/filter_build.h"
#include "engine/filter/filter_token.h"
#include "engine/filter/filter_values.h"

/* Make the tree of a comparison.
 *
 * attribute  its index; values->attribute is the attribute itself
 * op         one that the attribute's type takes; TOKEN_IN and TOKEN_HAS: any of the values; TOKEN_BETWEEN: two values;
 *            else one
 *
 * Returns ERR_OK; ERR_QUERY if a value does not fit the type; ERR_MEMORY.
 */
err_t filter_leaf_make(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                       const struct filter_values *values, const struct filter_node **out);

#endif
