/* SPDX-License-Identifier: Apache-2.0 */
/* Pulses show main which threads make progress. A thread beats its pulse in each turn of its loop, in long steps, and
 * while it waits for a broker. Long work in the engine beats it through progress_note(). If a pulse does not beat for
 * long, main stops feeding the watchdog of the service manager (liveness.h).
 */
#ifndef DAEMON_HEALTH_PULSE_H
#define DAEMON_HEALTH_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

struct pulse {
  const char *thread;
  _Atomic int64_t beat_ns; /* time of the last beat; 0: the thread waits for work */
  struct pulse *next;
};

/* The pulses of all threads. Initialise with zeros. */
struct pulses {
  _Atomic(struct pulse *) first;
};

/* Give the calling thread a pulse and a name of at most 15 bytes. `pulse` must outlive `all`. */
void pulse_begin(struct pulses *all, struct pulse *pulse, const char *thread);

/* Note that the calling thread makes progress; note that it waits for work, which may take any time. Do nothing if the
 * thread has no pulse. */
void pulse_beat(void);
void pulse_rest(void);

/* Return the name of a thread that is not waiting for work and has not beaten for longer than `limit_ns`; NULL: none.
 * Thread: any. */
const char *pulses_find_stalled(struct pulses *all, int64_t limit_ns);

#endif
