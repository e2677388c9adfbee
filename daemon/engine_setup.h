/* SPDX-License-Identifier: Apache-2.0 */
/* Make the engine's configuration from the daemon's. */
#ifndef DAEMON_ENGINE_SETUP_H
#define DAEMON_ENGINE_SETUP_H

#include "daemon/config/config.h"

/* Fill `out` from the configuration. It points to `spaces` and into `config`, which must outlive it.
 *
 * spaces  [config->n_spaces], filled here
 */
void engine_setup_make(const struct config *config, struct engine_space *spaces, struct engine_config *out);

#endif
