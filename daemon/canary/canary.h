/* SPDX-License-Identifier: Apache-2.0 */
/* The canary: it measures all the time how fresh the answers are, also while nobody writes items.
 *
 * It writes a tombstone of the key CANARY_KEY to the catalogue topic, which deletes nothing, and waits until the
 * published epoch has seen it. The time between goes to the histogram canary_us. Both ends are taken from the same
 * clock, so clocks that differ do not matter. There is one canary at a time.
 */
#ifndef DAEMON_CANARY_CANARY_H
#define DAEMON_CANARY_CANARY_H

#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/health/alarm.h"
#include "daemon/setup/kafka_setup.h"
#include "engine/engine.h"

#define CANARY_KEY "sluice.canary"

/* A canary that is not visible after this time is given up, and another one is written: its topic may be gone. */
enum { CANARY_GIVE_UP_S = 60 };

struct canary;

struct canary_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct counters *counters;
  struct alarm *alarm;
};

/* Start the thread, which writes a canary every canary.interval_ms. What the context points to must outlive it. */
err_t canary_open(const struct canary_context *context, struct canary **out);

/* Stop the thread, and close its producer. */
void canary_close(struct canary **c);

#endif
