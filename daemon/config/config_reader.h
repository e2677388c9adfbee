/* SPDX-License-Identifier: Apache-2.0 */
/* Read settings from a YAML tree: private to the configuration. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_READER_H
#define DAEMON_CONFIG_CONFIG_READER_H

#include "daemon/config/config.h"
#include "daemon/config/yaml_tree.h"

/* Set every setting of the configuration, first to its default, then to the value in the file.
 *
 * reads_secrets  false: a property whose value is elsewhere keeps the text that says where, and nothing is read
 * config         all zeros except `path`, and `given` and `lines` with room for n_settings elements
 * problems       receives every mistake in the file: unknown keys, wrong values, missing settings
 *
 * Returns ERR_MEMORY.
 */
err_t config_reader_read(struct yaml_tree *tree, bool reads_secrets, struct config *config, struct problems *problems);

#endif
