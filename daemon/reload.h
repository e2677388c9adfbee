/* SPDX-License-Identifier: Apache-2.0 */
/* On SIGHUP, read the configuration again and apply the settings that a running daemon can change. Thread: main. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "daemon/config/config.h"

/* Read the file of the running configuration again. A new log.level takes effect and is copied to `running`. The event
 * `reloaded` lists changed settings, and those that need a restart. If the file has problems, nothing changes, and an
 * event is logged for each. */
void reload(struct config *running);

#endif
