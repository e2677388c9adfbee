/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration asks of the engine. */
#ifndef DAEMON_ENGINE_SETUP_H
#define DAEMON_ENGINE_SETUP_H

#include "daemon/config/config.h"

/* spaces  [n_spaces of the configuration]; valid as long as `out` and the configuration are */
void engine_setup_make(const struct config *config, struct engine_space *spaces, struct engine_config *out);

#endif
