/* SPDX-License-Identifier: Apache-2.0 */
/* Read settings from a YAML tree: private to the configuration. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_READER_H
#define DAEMON_CONFIG_CONFIG_READER_H

#include "daemon/config/config.h"
#include "daemon/config/yaml_tree.h"

/* Which values are read that the file only refers to: none, those of properties of Kafka, or all. */
enum config_secrets { CONFIG_SECRETS_NONE, CONFIG_SECRETS_KAFKA, CONFIG_SECRETS_ALL };

/* Set every setting of the configuration, first to its default, then to the value in the file.
 *
 * secrets        a value that is elsewhere and not read keeps the text that says where
 * config         all zeros except `path`, and `given` and `lines` with room for n_settings elements
 * problems       receives every mistake in the file: unknown keys, wrong values, missing settings
 *
 * Returns ERR_MEMORY.
 */
err_t config_reader_read(struct yaml_tree *tree, enum config_secrets secrets, struct config *config,
                         struct problems *problems);

#endif
