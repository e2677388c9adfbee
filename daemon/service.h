/* SPDX-License-Identifier: Apache-2.0 */
/* The service: every part of the daemon, opened in one order and closed in the reverse one. Thread: main. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <pthread.h>

#include "base/clock.h"
#include "daemon/http/http.h"
#include "daemon/queries/query_thread.h"
#include "daemon/http/status.h"

struct service {
  struct counters counters;
  struct alarm alarm;
  struct kafka_setup kafka;
  struct engine *engine;
  struct store *store;
  struct offset_tracker *tracker; /* which queries are answered */
  struct delivery *delivery;
  struct catalogue *catalogue;
  struct query_thread *query_thread;
  struct http *http;
  struct status status;
  bool has_started_queries;
  struct clock_watch clock;
  const char *still; /* a thread that makes no progress */
  _Atomic bool is_hurried; /* a stop waits for Kafka no longer */
  pthread_mutex_t lock;    /* of `delivery`, for service_hurry() */
};

/* Open everything. On error what was opened is closed by service_close(), which has to be called in any case. */
err_t service_open(const struct config *config, struct service *s);

/* To be called every so often: begins to read queries once the catalogue has caught up, and keeps the readiness. */
err_t service_step(struct service *s);

/* Whether all threads make progress. When one does not, an event says which; another says that it goes on.
 * Thread: main. */
bool service_is_alive(struct service *s);

/* Answer what was accepted, commit, and close. Nothing waits for Kafka for ever: clients that do not end are left
 * behind, and said. Returns whether none was: else threads of theirs still run. Thread: any. */
bool service_close(struct service *s);

/* A service_close() that goes on waits for Kafka no longer. Thread: any. */
void service_hurry(struct service *s);

#endif
