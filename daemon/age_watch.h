/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which ages of records to believe. An age is the difference between our wall clock and the writer's. It means
 * nothing if the writer's clock is ahead of ours, or if our clock was stepped after the record was written.
 *
 * Thread: one.
 */
#ifndef DAEMON_AGE_WATCH_H
#define DAEMON_AGE_WATCH_H

#include <stdbool.h>

#include "base/clock.h"

/* A watch starts as all zeros. */
struct age_watch {
  struct clock_watch clock;
  int64_t doubtful_until_ns; /* until then large ages are not believed */
};

/* A writer's clock may be ahead by AGE_SKEW_MS. After a step of our clock, ages above AGE_DOUBTFUL_MS are not believed
 * for that same time. */
enum { AGE_SKEW_MS = 1000, AGE_DOUBTFUL_MS = 60000 };

/* Look for a step of the clock. Call this before the ages of a batch are computed. */
static inline void age_watch_look(struct age_watch *w)
{
  if (clock_watch_step(&w->clock))
    w->doubtful_until_ns = clock_now_ns() + AGE_DOUBTFUL_MS * CLOCK_NS_PER_MS;
}

static inline bool age_watch_believes(const struct age_watch *w, int64_t age_ms)
{
  if (age_ms < -AGE_SKEW_MS)
    return false;
  return age_ms <= AGE_DOUBTFUL_MS || clock_now_ns() >= w->doubtful_until_ns;
}

#endif
