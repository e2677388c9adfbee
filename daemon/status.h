/* What the daemon says of itself: for people and programs (JSON), and for Prometheus. Thread: any. */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <stdatomic.h>

#include "daemon/catalogue.h"

struct status {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  const struct catalogue *catalogue;
  struct counters *counters;
  enum isa isa;
  int64_t started_ns;
  _Atomic bool is_ready;
};

/* Text that the caller frees with free(); NULL without memory. */
char *status_json(struct status *s);
char *status_metrics(struct status *s);

/* One line for people: phase, items, epoch. text has room for n bytes. */
void status_line(struct status *s, char *text, size_t n);

#endif
