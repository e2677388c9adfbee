/* SPDX-License-Identifier: Apache-2.0 */
/* A reload that changes user names or passwords of the Kafka clients. Thread: main. */
#ifndef DAEMON_RELOAD_CREDENTIALS_H
#define DAEMON_RELOAD_CREDENTIALS_H

#include "daemon/config/config.h"

/* Do the Kafka properties of two configurations differ in nothing but what a running daemon can change: SASL user names
 * and passwords, which each client has in both, and the values of properties of encryption? Only then
 * credentials_change() and certificates_renew() may be called. */
bool credentials_can_change(const struct config *running, const struct config *newer);

/* Use the credentials of a newer configuration.
 *
 * running  the configuration that the clients were opened with
 * latest   the configuration whose credentials are used now
 * newer    must stay open until the next change
 *
 * Returns whether any differ.
 */
bool credentials_change(const struct config *running, const struct config *latest, const struct config *newer);

#endif
