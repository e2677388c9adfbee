/* SPDX-License-Identifier: Apache-2.0 */
/* What main runs: a daemon that searches (daemon/service.h), or one that joins the answers of shards
 * (daemon/merge/merge_service.h). */
#ifndef DAEMON_ROLE_H
#define DAEMON_ROLE_H

#include "daemon/config/config.h"
#include "daemon/health/alarm.h"
#include "daemon/health/readiness.h"

/* The functions get `service`. Thread: main, unless one says otherwise. */
struct role {
  void *service;
  struct alarm *alarm; /* open while the service is */
  const struct readiness *readiness;
  const char *stop_note; /* for the log: what a stop does about open queries */

  /* Open all parts. Call close() in any case: after an error, it closes the parts that were opened. Thread: any. */
  err_code_t (*open)(void *service, const struct config *config);

  /* Update the readiness, and do what is due. Call this often. */
  err_code_t (*step)(void *service);

  /* Write one line for people. */
  void (*print_line)(void *service, char *text, size_t n);

  /* Close all parts. All waits for Kafka are limited: a client that does not close in time is left behind, and logged.
   * Returns false if there is one: then its threads still run. Thread: any. */
  bool (*close)(void *service);

  /* Make a close() that runs, or is about to, stop waiting for Kafka. NULL: nothing makes it. Thread: any. */
  void (*hurry)(void *service);
};

#endif
