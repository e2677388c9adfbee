/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping within a limit, whatever Kafka does. Thread: main. */
#ifndef DAEMON_STOP_H
#define DAEMON_STOP_H

#include "daemon/service.h"

/* Close the service in a thread of its own; another signal to stop hurries it.
 *
 * signals  the descriptor that SIGTERM and SIGINT are read from
 *
 * Returns true when everything is closed. False when the time ran out or Kafka clients had to be left behind: then
 * threads still run, and the process must end without exit handlers. Blocks: up to STOP_LIMIT_S.
 */
bool stop_service(struct service *s, int signals);

/* The unit's TimeoutStopSec is larger. */
enum { STOP_LIMIT_S = 20 };

#endif
