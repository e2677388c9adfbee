/* The query reader thread: from the query topic to the search workers (docs/architecture.md, "Life of a query").
 *
 * It decodes and checks, holds queries back until the catalogue has seen what they ask for (at_least), and batches them
 * by space and method. A batch goes to the workers when it is full, when it is query.batch_wait_us old, or as soon as a
 * worker is idle.
 */
#ifndef DAEMON_QUERIES_H
#define DAEMON_QUERIES_H

#include "daemon/alarm.h"
#include "daemon/config.h"
#include "daemon/kafka_setup.h"
#include "daemon/reply.h"
#include "engine/engine.h"

struct queries;

struct queries_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct delivery *delivery;
  struct counters *counters;
  struct alarm *alarm;
};

/* Open the pools; consumer, workers and thread come with queries_start(). */
err_t queries_open(const struct queries_context *context, struct queries **out);

/* The catalogue has caught up: begin to read. Thread: main. */
err_t queries_start(struct queries *q);

/* Take no more queries, answer those that were accepted. The delivery has to be closed before queries_close(), which
 * commits. */
void queries_stop(struct queries *q);
void queries_close(struct queries **q);

/* Whether the consumer group has given this daemon its partitions. Thread: main. */
bool queries_is_assigned(const struct queries *q);

#endif
