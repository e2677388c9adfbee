/* SPDX-License-Identifier: Apache-2.0 */
/* A filter that is bound to attribute columns: its texts are looked up, and its operands are ordered by counts. Then
 * any stretch of slots can be evaluated, in any order and without doing this again. */
#ifndef ENGINE_ATTRIBUTES_ATTRIBUTE_SELECTION_H
#define ENGINE_ATTRIBUTES_ATTRIBUTE_SELECTION_H

#include "engine/attributes/attribute_columns.h"

struct attribute_selection;

/* Bind a filter to columns.
 *
 * out  lives in the region, borrows from the filter, and is valid until the columns change
 *
 * Returns ERR_MEMORY. Thread: any, while the arena is in front. Time and memory: the filter's values,
 * however many slots have them.
 */
err_t attribute_selection_bind(const struct attribute_columns *c, const struct filter_node *filter,
                               struct region *region, const struct attribute_selection **out);

/* Evaluate for slots 64*first..64*(first+n)-1, as attribute_columns_select(). Thread: any; several at once. Allocates:
 * no. */
void attribute_selection_words(const struct attribute_selection *s, size_t first, size_t n, uint64_t *words);

#endif
