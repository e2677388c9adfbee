/* SPDX-License-Identifier: Apache-2.0 */
/* sluiced --check-config: what would keep the daemon from starting, as far as that can be told without starting. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "daemon/config/problems.h"

/* Read a configuration and check all that it names: models, backend, instruction set, memory, the store's directory.
 * Nothing is opened for writing, no arena is reserved, no broker is asked.
 *
 * problems  all that is wrong is added to it, with file and line
 *
 * Returns ERR_OK whatever was found; ERR_MEMORY when there was not enough to look.
 */
err_t check_file(const char *path, struct problems *problems);

#endif
