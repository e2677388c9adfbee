/* SPDX-License-Identifier: Apache-2.0 */
/* Main of the role merge. */
#ifndef DAEMON_MERGE_RUN_H
#define DAEMON_MERGE_RUN_H

#include "daemon/config/config.h"

/* Run until a signal asks to stop, or the merge thread fails. Returns the exit status. */
int merge_run(struct config *config, int signals);

#endif
