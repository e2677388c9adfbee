/* SPDX-License-Identifier: Apache-2.0 */
/* The service: all parts of a daemon that searches, opened in order and closed in reverse order. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include "daemon/role.h"

extern const struct role service_role;

#endif
