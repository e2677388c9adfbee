/* The catalogue thread: from the catalogue topic into the store and the arenas (docs/architecture.md, "Life of an
 * item").
 *
 * It owns the catalogue consumer, the store and the back arena; query threads see its work through the published epoch
 * alone.
 */
#ifndef DAEMON_CATALOGUE_H
#define DAEMON_CATALOGUE_H

#include "daemon/alarm.h"
#include "daemon/config.h"
#include "daemon/counters.h"
#include "daemon/delivery.h"
#include "daemon/kafka_setup.h"
#include "engine/engine.h"
#include "store/store.h"

struct catalogue;

struct catalogue_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct store *store;
  struct delivery *delivery;
  struct counters *counters;
  struct alarm *alarm;
};

/* Where it stands; catalogue_phase_name() has words for people. */
enum catalogue_phase {
  CATALOGUE_LOADING,     /* filling the arenas from the store */
  CATALOGUE_CONNECTING,  /* waiting for the broker and the topic */
  CATALOGUE_CATCHING_UP, /* reading up to the end that the log had at start */
  CATALOGUE_REBUILDING,  /* the same from the log's first record, since it does not continue the store */
  CATALOGUE_LIVE,
};

/* Start the thread. The context is copied; what it points to outlives the catalogue. */
err_t catalogue_open(const struct catalogue_context *context, struct catalogue **out);

/* Tell the thread to stop after the batch at hand, and do not wait for it. Thread: any. */
void catalogue_ask_to_stop(struct catalogue *c);

/* Stop after the batch at hand. */
void catalogue_close(struct catalogue **c);

/* Thread: any. */
enum catalogue_phase catalogue_phase(const struct catalogue *c);
const char *catalogue_phase_name(enum catalogue_phase phase);

#endif
