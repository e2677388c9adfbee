/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which ages of records to believe. An age is the difference between our wall clock and the writer's. It means
 * nothing if the writer's clock is ahead of ours, or if our clock was stepped after the record was written.
 *
 * Thread: one.
 */
#ifndef BASE_AGE_WATCH_H
#define BASE_AGE_WATCH_H

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

/* Return how old a record is, at least 0; -1 if its age cannot be believed.
 *
 * timestamp_ms  of the record; 0 or less: it has none. A writer may set any number
 */
static inline int64_t age_watch_age_ms(const struct age_watch *w, int64_t timestamp_ms)
{
  if (timestamp_ms <= 0)
    return -1;
  int64_t age_ms = clock_unix_ms() - timestamp_ms;
  if (age_ms < -AGE_SKEW_MS || (age_ms > AGE_DOUBTFUL_MS && clock_now_ns() < w->doubtful_until_ns))
    return -1;
  return age_ms > 0 ? age_ms : 0;
}

/* Return when a record was written, by clock_now_ns(): a later step of the wall clock does not change that. 0 if its
 * age cannot be believed. */
static inline int64_t age_watch_written_ns(const struct age_watch *w, int64_t timestamp_ms, int64_t now_ns)
{
  int64_t age_ms = age_watch_age_ms(w, timestamp_ms);

  return age_ms < 0 ? 0 : now_ns - age_ms * CLOCK_NS_PER_MS;
}

#endif
