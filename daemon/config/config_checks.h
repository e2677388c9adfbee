/* SPDX-License-Identifier: Apache-2.0 */
/* Checks across settings: private to the configuration. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_CHECKS_H
#define DAEMON_CONFIG_CONFIG_CHECKS_H

#include "daemon/config/config.h"

/* Check settings against each other.
 *
 * problems  receives what is wrong
 *
 * Returns ERR_MEMORY.
 */
err_t config_checks_run(const struct config *c, struct problems *problems);

#endif
