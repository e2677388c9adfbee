/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in a filter's text: integers of 64 bits, and decimals such as -2.5 and 1e6. */
#ifndef ENGINE_FILTER_FILTER_NUMBER_H
#define ENGINE_FILTER_FILTER_NUMBER_H

#include "base/err.h"
#include "base/value.h"

enum { FILTER_NUMBER_BYTES_MAX = 64 };

/* Read a number: an integer is exact, a decimal becomes the nearest double.
 *
 * text    the whole filter, for the error's position
 * source  the number in it
 * out     VALUE_INTEGER or VALUE_NUMBER; finite
 *
 * Returns ERR_OK; ERR_QUERY.
 */
err_t filter_number_read(struct span text, struct span source, struct value *out);

#endif
