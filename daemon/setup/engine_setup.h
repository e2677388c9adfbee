/* SPDX-License-Identifier: Apache-2.0 */
/* Make the engine's configuration from the daemon's, and decide how many threads search. */
#ifndef DAEMON_SETUP_ENGINE_SETUP_H
#define DAEMON_SETUP_ENGINE_SETUP_H

#include "daemon/config/config.h"

/* Fill `out` from the configuration. It points to `spaces` and into `config`, which must outlive it.
 *
 * spaces  [config->n_spaces], filled here
 */
void engine_setup_make(const struct config *config, struct engine_space *spaces, struct engine_config *out);

/* Prefix the newest error message with file and line of what engine_check() blames. Returns err. */
err_t engine_setup_blame(const struct config *config, err_code_t err, enum engine_fault fault, size_t space);

/* Open the engine that engine_setup_make() has described. Errors as engine_open(); the message says which line of the
 * configuration is to blame. */
err_t engine_setup_open(const struct config *config, const struct engine_config *engine_config, struct engine **out);

/* Let threads share searches, as query.threads_per_search says. Errors as engine_share_searches(). */
err_t engine_setup_share(const struct config *config, struct engine *e);

/* Return query.workers, or the number that 0 stands for. */
size_t engine_setup_n_workers(const struct config *config, const struct engine *e);

#endif
