/* SPDX-License-Identifier: Apache-2.0 */
/* A reload that changes who asks the schema registry: its user name, its password, and the authorities that may have
 * signed the registry's certificate. Another URL needs a restart. Thread: main. */
#ifndef DAEMON_RELOAD_REGISTRY_LOGIN_H
#define DAEMON_RELOAD_REGISTRY_LOGIN_H

#include "daemon/config/config.h"

/* Is it one of these settings? */
bool registry_login_has(const char *setting);

/* Return a digest of their values, and of the file of authorities. */
uint64_t registry_login_digest(const struct config *c);

/* Is a registry asked, and is its URL the same in both configurations? */
bool registry_login_can_change(const struct config *running, const struct config *newer);

/* Ask the registry as a newer configuration says. Only if registry_login_can_change(). Returns the errors of
 * schema_registry_renew(). */
err_t registry_login_change(const struct config *newer);

#endif
