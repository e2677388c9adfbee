/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP: the configuration is read again, and what can change in a running daemon does. Thread: main. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "daemon/config/config.h"

/* Read the running configuration's file again. log.level is taken over, also into `running`; the event `reloaded` names
 * what has changed and needs a restart. A file with problems changes nothing: an event for each says why. */
void reload(struct config *running);

#endif
