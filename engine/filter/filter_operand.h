/* SPDX-License-Identifier: Apache-2.0 */
/* The values that follow an operator in a filter's text: literals, parameters and lists. */
#ifndef ENGINE_FILTER_FILTER_OPERAND_H
#define ENGINE_FILTER_FILTER_OPERAND_H

#include "engine/filter/filter_parser.h"
#include "engine/filter/filter_values.h"

/* Take the values of an operator.
 *
 * op   TOKEN_BETWEEN: two values are taken; TOKEN_IN: a list; TOKEN_HAS: a value or a list; else one value
 * out  its attribute is set; v, places, n and is_parameter_list are written
 *
 * Returns ERR_OK; ERR_QUERY; ERR_MEMORY.
 */
err_t filter_operand_take(struct filter_parser *p, enum filter_token_kind op, struct filter_values *out);

#endif
