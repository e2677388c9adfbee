/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread: it reads the catalogue topic and writes the store and the arenas. See docs/architecture.md,
 * "Life of an item".
 *
 * It owns the catalogue consumer, the store and the back arena. Query threads see its work only through the published
 * epoch. If topic, broker or disk fail, the last published epoch is still searched. The phase and the report say what
 * is wrong.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_H
#define DAEMON_CATALOGUE_CATALOGUE_H

#include "daemon/catalogue/catalogue_phase.h"
#include "daemon/catalogue/catalogue_report.h"
#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/delivery/delivery.h"
#include "daemon/health/alarm.h"
#include "daemon/setup/kafka_setup.h"
#include "engine/engine.h"
#include "store/store.h"

struct catalogue;
struct models;

struct catalogue_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct store *store;
  struct delivery *delivery;
  struct counters *counters;
  struct alarm *alarm;
};

/* Start the thread. The context is copied; what it points to must outlive the catalogue. */
err_t catalogue_open(const struct catalogue_context *context, struct catalogue **out);

/* If a step that no query waits for has stood back for long on a busy machine, let it go on like any other. Call it
 * often. Thread: main. */
void catalogue_bring_forward(struct catalogue *c);

/* Ask the thread to stop after its current batch. Does not wait. Thread: any. */
void catalogue_ask_to_stop(struct catalogue *c);

/* Stop the thread after its current batch, and wait for it. The report stays readable. */
void catalogue_stop(struct catalogue *c);

/* Stop and close. The delivery must be closed before: it sets flags in dead letters that are freed here. */
void catalogue_close(struct catalogue **c);

/* Thread: any. */
enum catalogue_phase catalogue_phase(const struct catalogue *c);

/* Has a complete catalogue been published since the start? Then queries can be answered. It may be out of date: see the
 * phase. Thread: any. */
bool catalogue_is_serving(const struct catalogue *c);

/* Return the generations of models; NULL: there is no control topic. Thread: any, for what is for any thread. */
struct models *catalogue_models(struct catalogue *c);

/* Return the report. Lock it to read it. Thread: any. */
struct catalogue_report *catalogue_report_of(struct catalogue *c);

#endif
