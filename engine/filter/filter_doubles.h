/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of numbers in their normal form. */
#ifndef ENGINE_FILTER_FILTER_DOUBLES_H
#define ENGINE_FILTER_FILTER_DOUBLES_H

#include "engine/filter/filter_build.h"
#include "engine/filter/filter_token.h"
#include "engine/filter/filter_values.h"

/* Make the tree of a comparison; see filter_leaf_make().
 *
 * attribute  of type ATTRIBUTE_NUMBER
 * op         not TOKEN_NOT_EQUAL
 */
err_t filter_doubles_make(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                          const struct filter_values *values, const struct filter_node **out);

#endif
