/* SPDX-License-Identifier: Apache-2.0 */
/* How main knows that a thread makes progress: each thread that matters beats its pulse whenever its loop turns, and in
 * its long steps. Waiting for a broker is no standstill: who waits beats. Main withholds the watchdog's food when a
 * pulse has not been beaten for long (service_is_alive()).
 */
#ifndef DAEMON_PULSE_H
#define DAEMON_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

struct pulse {
  const char *thread;
  _Atomic int64_t beat_ns; /* 0: at rest */
  struct pulse *next;
};

/* Those of all threads: all zeros at first. */
struct pulses {
  _Atomic(struct pulse *) first;
};

/* The calling thread has a pulse from now on, which outlives `all`. */
void pulse_begin(struct pulses *all, struct pulse *pulse, const char *thread);

/* The calling thread makes progress; it waits for work, for as long as it takes. Without a pulse nothing happens. */
void pulse_beat(void);
void pulse_rest(void);

/* A thread that has not beaten for longer than `limit_ns`, or NULL. Thread: any. */
const char *pulses_find_still(struct pulses *all, int64_t limit_ns);

#endif
