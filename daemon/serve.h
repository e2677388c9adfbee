/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a daemon between its configuration and its exit status. Thread: main. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

#include "daemon/role.h"

/* Run a role until a signal asks to stop, or a thread fails.
 *
 * config   not const, because a reload changes it
 * signals  the descriptor of signals_open()
 *
 * Returns the exit status. If threads were left behind, the process ends instead, without exit handlers, because these
 * would unload libraries that the threads use. */
int serve(struct config *config, const struct role *role, int signals);

#endif
