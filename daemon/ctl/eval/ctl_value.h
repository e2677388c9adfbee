/* SPDX-License-Identifier: Apache-2.0 */
/* Values of attributes and of filter parameters, from JSON. Thread: the one that owns the region. */
#ifndef DAEMON_CTL_CTL_VALUE_H
#define DAEMON_CTL_CTL_VALUE_H

#include <jansson.h>

#include "base/err.h"
#include "base/region.h"
#include "base/value.h"

/* Read null, true, a number, text, or a list of these. The value lives in the region and borrows nothing from the JSON.
 * Returns ERR_ITEM with what is wrong; ERR_MEMORY. */
err_t ctl_value_read(const json_t *json, struct region *region, struct value *out);

/* Read a list of values from its text. Returns ERR_USAGE with what is wrong; ERR_MEMORY. */
err_t ctl_values_read(const char *text, struct region *region, const struct value **out, size_t *n);

#endif
