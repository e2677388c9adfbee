/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, sleeping, and noticing steps of the wall clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back, for measuring durations. */
int64_t clock_now_ns(void);

/* The same, but the clock also runs while the machine is suspended. */
int64_t clock_boot_ns(void);

/* Milliseconds since 1970, for deadlines and timestamps from outside. */
int64_t clock_unix_ms(void);

/* Nanoseconds since 1970, for moments that others compare with theirs. */
int64_t clock_unix_ns(void);

/* Sleep for at least `ns` nanoseconds, unless a signal arrives. */
void clock_sleep_ns(int64_t ns);

/* A watch for steps of the wall clock. Each user has its own, which starts as all zeros. Thread: one. */
struct clock_watch {
  int64_t ahead_ns; /* wall clock minus monotonic clock at the last call; 0: no call yet */
};

/* Return by how many milliseconds the wall clock was stepped since the last call; 0 if by less than a second. */
int64_t clock_watch_step(struct clock_watch *w);

#define CLOCK_NS_PER_US INT64_C(1000)
#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S  INT64_C(1000000000)

#endif
