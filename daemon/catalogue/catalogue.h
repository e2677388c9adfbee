/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread: from the catalogue topic into the store and the arenas (docs/architecture.md, "Life of an
 * item").
 *
 * It owns the catalogue consumer, the store and the back arena; query threads see its work through the published epoch
 * alone. Whatever happens to the topic, the broker or the disk, the epoch that was published last is searched on; the
 * phase and the report say what the matter is.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_H
#define DAEMON_CATALOGUE_CATALOGUE_H

#include "daemon/alarm.h"
#include "daemon/catalogue/catalogue_phase.h"
#include "daemon/catalogue/catalogue_report.h"
#include "daemon/config/config.h"
#include "daemon/counters.h"
#include "daemon/delivery/delivery.h"
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

/* Start the thread. The context is copied; what it points to outlives the catalogue. */
err_t catalogue_open(const struct catalogue_context *context, struct catalogue **out);

/* Tell the thread to stop after the batch at hand, and do not wait for it. Thread: any. */
void catalogue_ask_to_stop(struct catalogue *c);

/* Stop the thread after the batch at hand; what it reports stays. */
void catalogue_stop(struct catalogue *c);

/* Stop and close. The delivery must not set the flags of letters any more. */
void catalogue_close(struct catalogue **c);

/* Thread: any. */
enum catalogue_phase catalogue_phase(const struct catalogue *c);

/* Has a whole catalogue been published since the start, so that queries can be answered? It may be old: the phase says
 * whether it is. Thread: any. */
bool catalogue_is_serving(const struct catalogue *c);

/* What it reports; to be locked. Thread: any. */
struct catalogue_report *catalogue_report_of(struct catalogue *c);

#endif
