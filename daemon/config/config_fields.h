/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of names to paths into a record: catalogue.mapping. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_FIELDS_H
#define DAEMON_CONFIG_CONFIG_FIELDS_H

#include "daemon/config/config.h"

/* Add an entry to a map that was allocated with room for it. Returns ERR_CONFIG with what is expected of the path;
 * ERR_MEMORY. */
err_t config_fields_add(struct config_fields *fields, struct span name, struct span path, int line);
void config_fields_free(struct config_fields *fields);

/* Check the format of the catalogue against spaces and attributes.
 *
 * problems  receives what is wrong, each mistake with its line
 *
 * Returns ERR_MEMORY.
 */
err_t config_fields_check(const struct config *c, struct problems *problems);

#endif
