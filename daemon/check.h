/* SPDX-License-Identifier: Apache-2.0 */
/* sluiced --check-config: find what would keep the daemon from starting, without starting it. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "daemon/config/problems.h"

/* Read a configuration and check what it names: models, backend, instruction set, memory, the store's directory. Opens
 * nothing for writing, reserves no arena, and connects to no broker.
 *
 * problems  all problems found are added, with file and line
 *
 * Returns ERR_OK even if problems were found; ERR_MEMORY when memory did not suffice for the check.
 */
err_t check_file(const char *path, struct problems *problems);

#endif
