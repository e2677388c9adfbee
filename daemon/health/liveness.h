/* SPDX-License-Identifier: Apache-2.0 */
/* What main watches in every role: that all threads make progress, and that the wall clock can be waited by. Thread:
 * main. */
#ifndef DAEMON_HEALTH_LIVENESS_H
#define DAEMON_HEALTH_LIVENESS_H

#include "base/clock.h"
#include "base/err.h"
#include "daemon/health/pulse.h"

/* Initialise with zeros. */
struct liveness {
  const char *stalled; /* name of a thread that makes no progress; NULL: none */
  struct clock_watch clock;
};

/* Do all threads make progress? Logs an event when one stalls, and another when it goes on. */
bool liveness_is_given(struct liveness *l, struct pulses *pulses);

/* Log steps of the wall clock. Our waits do not depend on it, and usually librdkafka's do not either
 * (ingest/kafka/kafka_waits.h). If they do, a large step back would freeze librdkafka, and only a restart helps: then
 * returns ERR_SYSTEM. Call this often. */
err_t liveness_check_clock(struct liveness *l);

#endif
