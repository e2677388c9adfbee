/* SPDX-License-Identifier: Apache-2.0 */
/* The limits, and what the log says about them. */
#include "daemon/health/liveness.h"

#include <inttypes.h>

#include "base/log.h"
#include "ingest/kafka/kafka_waits.h"

/* How long a thread may make no progress. librdkafka waits 60 s for a broker that hangs (socket.timeout.ms). */
enum { STALL_LIMIT_S = 120 };

/* The largest step back of the wall clock that we tolerate if librdkafka waits by that clock. */
enum { CLOCK_STEP_MS_MAX = 10000 };

bool liveness_is_given(struct liveness *l, struct pulses *pulses)
{
  const char *stalled = pulses_find_stalled(pulses, STALL_LIMIT_S * CLOCK_NS_PER_S);

  if (stalled && !l->stalled)
    log_error("thread_still", "thread=%s note=\"no progress for more than %d s: the watchdog is not fed\"", stalled,
              STALL_LIMIT_S);
  if (!stalled && l->stalled)
    log_info("thread_goes_on", "thread=%s", l->stalled);
  l->stalled = stalled;
  return !stalled;
}

err_t liveness_check_clock(struct liveness *l)
{
  int64_t by_ms = clock_watch_step(&l->clock);
  bool is_steady = kafka_waits_are_steady();

  if (by_ms)
    log_warn("clock_stepped", "by_ms=%" PRId64 " waits=%s", by_ms, is_steady ? "steady" : "wall");
  if (by_ms < -CLOCK_STEP_MS_MAX && !is_steady)
    FAIL(ERR_SYSTEM, "the clock went back by %" PRId64 " ms, and this librdkafka waits by the wall clock", -by_ms);
  return ERR_OK;
}
