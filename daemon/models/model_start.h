/* SPDX-License-Identifier: Apache-2.0 */
/* With which generation of each space the engine is opened. That is the model of the configuration, unless it was
 * retired: then nobody may have kept its file. So the newest switch's generation takes its place, whose file is there
 * and has the right digest. If there is none, it is the model of the configuration all the same.
 *
 * The others are loaded later, as in a running daemon.
 *
 * Thread: main, before the catalogue thread.
 */
#ifndef DAEMON_MODELS_MODEL_START_H
#define DAEMON_MODELS_MODEL_START_H

#include "daemon/config/config.h"
#include "engine/engine.h"
#include "store/store.h"

/* Put the generations into the engine's configuration. Without a control topic nothing is changed.
 *
 * region  new paths live here
 * spaces  [config->n_spaces] those of the configuration
 *
 * Returns an error of the store; ERR_MEMORY. Blocks: while it reads the files.
 */
err_t model_start_choose(const struct config *config, struct store *store, struct region *region,
                         struct engine_space *spaces);

#endif
