/* SPDX-License-Identifier: Apache-2.0 */
/* sluiced --check-config: find what would keep the daemon from starting, without starting it. */
#ifndef DAEMON_SETUP_CHECK_H
#define DAEMON_SETUP_CHECK_H

#include "daemon/config/config.h"
#include "daemon/config/problems.h"

/* Read a configuration and check what it names: models, backend, instruction set, memory, the store's directory. Opens
 * nothing for writing, reserves no arena, and connects to no broker.
 *
 * problems  all problems found are added, with file and line. What does nothing in a merge's configuration is no
 *           problem: it is printed to standard error
 *
 * Returns ERR_OK even if problems were found; ERR_MEMORY when memory did not suffice for the check.
 */
err_t check_file(const char *path, struct problems *problems);

/* Check the properties of each Kafka client together, and the files that they name. Adds the problems found. Returns
 * ERR_OK or ERR_MEMORY, as check_file(). */
err_t check_clients(const struct config *config, struct problems *problems);

#endif
