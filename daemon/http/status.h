/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the daemon that /status, /metrics and the service manager show. Thread: any. */
#ifndef DAEMON_HTTP_STATUS_H
#define DAEMON_HTTP_STATUS_H

#include <stdatomic.h>

#include "daemon/catalogue/catalogue.h"

struct status {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct catalogue *catalogue;
  struct counters *counters;
  enum isa isa;
  int64_t started_ns;
  struct counters_windows windows;
  int64_t windows_due_ns; /* when status_step() starts new windows; used by main only */
  _Atomic(const char *) not_ready; /* see status_not_ready(); service_step() sets it */
};

/* Return why the daemon is not ready, as static text that can follow "not ready: "; NULL: it is ready. /readyz,
 * /status, /metrics and the service manager all use this. */
static inline const char *status_not_ready(const struct status *s)
{
  return atomic_load(&s->not_ready);
}

/* Move the time windows of the histograms when they are due. Call this often. Thread: main. */
void status_step(struct status *s);

/* Return the body of /status, a JSON object. The caller frees it with free(); NULL: out of memory. */
char *status_json(struct status *s);

/* Write one line for people: readiness, items, epoch, answered queries.
 *
 * text  [n] bytes
 */
void status_line(struct status *s, char *text, size_t n);

#endif
