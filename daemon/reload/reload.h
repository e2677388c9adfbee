/* SPDX-License-Identifier: Apache-2.0 */
/* On SIGHUP, read the configuration again and apply the settings that a running daemon can change. Thread: main. */
#ifndef DAEMON_RELOAD_RELOAD_H
#define DAEMON_RELOAD_RELOAD_H

#include "daemon/config/config.h"

struct reload {
  struct config *running; /* that the daemon was started with, and the numbers that were reloaded */
  struct config *latest;  /* owned; its credentials are used. NULL: those of `running` are */
  uint64_t certificates;  /* certificates_digest() of what the clients use */
  uint64_t registry;      /* registry_login_digest() of what its client uses */
};

/* Begin with a configuration that the clients are about to be opened with. */
void reload_init(struct config *running, struct reload *out);

/* Close `latest`. All Kafka clients must be closed. */
void reload_fini(struct reload *r);

/* Read the file of the running configuration again, and apply what can change: log.level, some numbers, the SASL user
 * names, passwords, certificates and keys of Kafka clients, and the user name, password and ca_file of the schema
 * registry. The event `reloaded` lists what has changed, and what needs a restart. If the file has problems, nothing
 * changes, and an event is logged for each. */
void reload(struct reload *r);

/* The same, and tell the service manager when it begins and ends: it may wait for that. Before the daemon was ready,
 * the service manager is told nothing. */
void reload_and_notify(struct reload *r, bool was_ready);

#endif
