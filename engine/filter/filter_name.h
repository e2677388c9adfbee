/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes by their name. */
#ifndef ENGINE_FILTER_FILTER_NAME_H
#define ENGINE_FILTER_FILTER_NAME_H

#include "base/err.h"
#include "base/value.h"

/* Find the attribute of a name.
 *
 * text  the whole filter, for the error's position
 * name  a name in it
 *
 * Returns ERR_OK; ERR_QUERY with the nearest name.
 */
err_t filter_name_find(struct span text, struct span name, const struct attributes *attributes, size_t *out);

#endif
