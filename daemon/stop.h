/* SPDX-License-Identifier: Apache-2.0 */
/* Stop the daemon within a time limit, whatever Kafka does. Thread: main. */
#ifndef DAEMON_STOP_H
#define DAEMON_STOP_H

#include "base/errand.h"
#include "daemon/role.h"

/* Close the role in a thread of its own. A second signal to stop ends its waits for Kafka.
 *
 * role     static, as `opening` is: the thread may be left behind
 * opening  the errand that still opens the role, which is waited for, a second at most; NULL: there is none
 * signals  the descriptor of signals_open()
 *
 * Returns true if everything is closed. Returns false if the time ran out or Kafka clients were left behind: then
 * threads still run, and the process must end without exit handlers. Blocks: up to STOP_LIMIT_S.
 */
bool stop_role(const struct role *role, struct errand *opening, int signals);

/* TimeoutStopSec of the systemd unit must be larger. */
enum { STOP_LIMIT_S = 20 };

#endif
