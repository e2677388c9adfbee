/* SPDX-License-Identifier: Apache-2.0 */
/* The role merge: its thread and its HTTP endpoint. */
#ifndef DAEMON_MERGE_MERGE_SERVICE_H
#define DAEMON_MERGE_MERGE_SERVICE_H

#include "daemon/role.h"

extern const struct role merge_role;

#endif
