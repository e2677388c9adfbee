/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the daemon that /status, /metrics and the service manager show. Thread: any. */
#ifndef DAEMON_HTTP_STATUS_H
#define DAEMON_HTTP_STATUS_H

#include <stdatomic.h>

#include "daemon/catalogue/catalogue.h"
#include "daemon/counters/search_counters.h"
#include "daemon/health/readiness.h"
#include "daemon/http/history.h"
#include "daemon/http/other_pages.h"
#include "daemon/queries/trial.h"
#include "daemon/seen/seen.h"

struct status {
  const struct config *config;
  const struct other_pages *other; /* of a role without catalogue, which has nothing here but config, kafka, counters
                                    * and readiness besides; else NULL */
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct catalogue *catalogue;
  struct seen *seen;   /* NULL: no seen topic is read */
  struct trial *trial; /* NULL: no queries can be tried here */
  struct counters *counters;
  const struct search_counters *searches;
  enum isa isa;
  int64_t started_ns;
  struct counters_windows windows;
  struct history history; /* of the last minutes */
  struct store *store;
  uint64_t epoch;                 /* the newest that main has seen */
  _Atomic int64_t epoch_since_ns; /* when main saw it first */
  int64_t windows_due_ns;         /* when status_step() starts new windows; used by main only */
  const struct readiness *readiness;
};

/* Return how long ago the epoch was published, accurate to the interval of status_step(). */
int64_t status_epoch_age_ns(const struct status *s);

/* Move the time windows of the histograms and add to the history when these are due, and note a new epoch. Call this
 * often. Thread: main. */
void status_step(struct status *s);

/* Write one line for people: readiness, items, epoch, answered queries.
 *
 * text  [n] bytes
 */
void status_line(struct status *s, char *text, size_t n);

#endif
