/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of itself: for people and programs (JSON), and for Prometheus. Thread: any. */
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
  int64_t windows_due_ns; /* for the next turn; of main */
  _Atomic(const char *) not_ready; /* see below; service_step() keeps it */
};

/* Why the daemon is not ready, in words that follow "not ready: "; NULL: it is ready. Static text. /readyz, /status,
 * /metrics and the service manager all say this. */
static inline const char *status_not_ready(const struct status *s)
{
  return atomic_load(&s->not_ready);
}

/* To be called every so often: lets the windows move on. Thread: main. */
void status_step(struct status *s);

/* Text that the caller frees with free(); NULL without memory. */
char *status_json(struct status *s);
char *status_metrics(struct status *s);

/* One line for people: readiness, items, epoch. text has room for n bytes. */
void status_line(struct status *s, char *text, size_t n);

#endif
