/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C that ends a command politely, with what it has. A second one ends it at once. */
#ifndef DAEMON_CTL_CTL_INTERRUPT_H
#define DAEMON_CTL_CTL_INTERRUPT_H

#include <stdbool.h>

/* From now on, note the first SIGINT or SIGTERM instead of ending. */
void ctl_interrupt_catch(void);

/* Has one come? Thread: any. */
bool ctl_interrupt_came(void);

#endif
