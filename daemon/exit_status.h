/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of sluiced. Errors that a restart cannot help have their own: systemd/sluiced.service.in lists them
 * in RestartPreventExitStatus=, and docs/configuration.md says what to do. */
#ifndef DAEMON_EXIT_STATUS_H
#define DAEMON_EXIT_STATUS_H

#include "base/err.h"

enum exit_status {
  EXIT_STATUS_OK = 0,
  EXIT_STATUS_FAILURE = 1, /* a restart may help */
  EXIT_STATUS_USAGE = 2,
  EXIT_STATUS_TOPIC = 3, /* the catalogue topic needs a person */
  EXIT_STATUS_STORE_CORRUPT = 4,
  EXIT_STATUS_CONFIG = 78, /* EX_CONFIG of sysexits.h */
};

/* Return the exit status for an error that ends the daemon. */
static inline int exit_status_of(err_code_t err)
{
  switch (err) {
  case ERR_OK:
    return EXIT_STATUS_OK;
  case ERR_CONFIG:
  case ERR_MODEL:
  case ERR_FULL:
    return EXIT_STATUS_CONFIG;
  case ERR_DISCONTINUITY:
  case ERR_KAFKA_DAMAGED: /* ends the daemon only if catalogue.on_damage is `stop` */
    return EXIT_STATUS_TOPIC;
  case ERR_STORE_CORRUPT:
    return EXIT_STATUS_STORE_CORRUPT;
  default:
    return EXIT_STATUS_FAILURE;
  }
}

#endif
