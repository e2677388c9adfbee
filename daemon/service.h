/* SPDX-License-Identifier: Apache-2.0 */
/* The service: all parts of the daemon, opened in order and closed in reverse order. Thread: main, unless a function
 * says otherwise. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <pthread.h>

#include "daemon/canary/canary.h"
#include "daemon/http/http.h"
#include "daemon/http/status.h"
#include "daemon/liveness.h"
#include "daemon/queries/query_thread.h"

struct service {
  struct counters counters;
  struct alarm alarm;
  struct kafka_setup kafka;
  struct engine *engine;
  struct store *store;
  struct offset_tracker *tracker; /* which queries are answered */
  struct delivery *delivery;
  struct catalogue *catalogue;
  struct seen *seen; /* NULL: no seen topic is read */
  struct query_thread *query_thread;
  struct canary *canary; /* NULL: there are none */
  struct http *http;
  struct status status;
  bool has_started_queries;
  struct liveness liveness;
  _Atomic bool is_hurried; /* a stop must no longer wait for Kafka */
  pthread_mutex_t lock;    /* guards `delivery` for service_hurry() */
};

/* Open all parts. Call service_close() in any case: after an error, it closes the parts that were opened. */
err_t service_open(const struct config *config, struct service *s);

/* Start reading queries once the catalogue is served, and update the readiness. Call this often. */
err_t service_step(struct service *s);

/* Do all threads make progress? Logs an event when one stalls, and another when it goes on. */
bool service_is_alive(struct service *s);

/* Answer the accepted queries, commit their offsets, and close all parts. All waits for Kafka are limited: a client
 * that does not close in time is left behind, and logged. Returns false if there is one: then its threads still run.
 * Thread: any. */
bool service_close(struct service *s);

/* Make a running service_close() stop waiting for Kafka. Thread: any. */
void service_hurry(struct service *s);

#endif
