/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a filter into a program for a device that keeps copies of the attribute columns (kernels/filter_program.h). */
#ifndef ENGINE_ATTRIBUTES_ATTRIBUTE_PROGRAM_H
#define ENGINE_ATTRIBUTES_ATTRIBUTE_PROGRAM_H

#include "engine/attributes/attribute_columns.h"
#include "kernels/filter_program.h"

/* Make the program of a filter.
 *
 * Texts become the codes that they have in these columns, and a text that no slot has becomes nothing. So the program
 * is for copies of these columns in this epoch.
 *
 * out  *out lives in the region, and is valid until the columns change. NULL: there is none. The copies do not have
 *      the texts of sets (attribute_columns_cell()), and lists of very many values are not worth their place
 *
 * Returns ERR_MEMORY. Thread: any, while the arena is in front. Time and memory: the filter's nodes and values.
 */
err_t attribute_program_make(const struct attribute_columns *c, const struct filter_node *filter, struct region *region,
                             const struct filter_program **out);

#endif
