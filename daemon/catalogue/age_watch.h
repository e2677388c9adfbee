/* SPDX-License-Identifier: Apache-2.0 */
/* Which ages of records to believe. An age is the difference of two wall clocks, the writer's and ours: it says nothing
 * while they do not agree, because the writer's is ahead of ours, or because ours was stepped after the record was
 * written.
 * Thread: one.
 */
#ifndef DAEMON_CATALOGUE_AGE_WATCH_H
#define DAEMON_CATALOGUE_AGE_WATCH_H

#include <stdbool.h>

#include "base/clock.h"

/* All zeros at first. */
struct age_watch {
  struct clock_watch clock;
  int64_t doubtful_until_ns;
};

/* How far a writer's clock may be ahead, and for how long after a step great ages are not believed: as long as they are
 * great. */
enum { AGE_SKEW_MS = 1000, AGE_DOUBTFUL_MS = 60000 };

/* To be called before the ages of a batch. */
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
