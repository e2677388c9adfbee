/* SPDX-License-Identifier: Apache-2.0 */
/* Time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds that never go back: for spans of time. */
int64_t clock_now_ns(void);

/* The same, and it counts the time that the machine was suspended. */
int64_t clock_boot_ns(void);

/* Milliseconds since 1970: for deadlines that come from outside. */
int64_t clock_unix_ms(void);

/* Sleep for at least that long. */
void clock_sleep_ns(int64_t ns);

/* Notices steps of the wall clock: each user has one of its own, all zeros at first. Thread: one. */
struct clock_watch {
  int64_t ahead_ns; /* what the wall clock shows more than the monotonic one; 0: not known yet */
};

/* By how many milliseconds the wall clock was stepped since the last call, if by more than a second; else 0. */
int64_t clock_watch_step(struct clock_watch *w);

#define CLOCK_NS_PER_US INT64_C(1000)
#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S  INT64_C(1000000000)

#endif
