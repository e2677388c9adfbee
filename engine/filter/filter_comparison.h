/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons in a filter's text. */
#ifndef ENGINE_FILTER_FILTER_COMPARISON_H
#define ENGINE_FILTER_FILTER_COMPARISON_H

#include "engine/filter/filter_parser.h"

/* Parse what follows an attribute: an operator that its type takes, and values. After a bool it may be nothing.
 *
 * attribute  its index
 *
 * Returns ERR_OK; ERR_QUERY; ERR_MEMORY.
 */
err_t filter_comparison_parse(struct filter_parser *p, size_t attribute, const struct filter_node **out);

#endif
