/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of items in the configuration: a map of names and types. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_ATTRIBUTES_H
#define DAEMON_CONFIG_CONFIG_ATTRIBUTES_H

#include "base/attributes.h"

/* Add an attribute to a list that was allocated with room for it.
 *
 * v, n  the list and its length
 * type  as in the file
 *
 * Returns ERR_CONFIG with what is wrong and what is expected, after the words "attributes."; ERR_MEMORY.
 */
err_t config_attributes_add(struct attribute *v, size_t *n, struct span name, struct span type);

#endif
