/* SPDX-License-Identifier: Apache-2.0 */
/* The alarm: a thread that fails tells main, and main stops the daemon in order with a failure. It also holds the
 * pulses, by which threads show that they make progress. */
#ifndef DAEMON_HEALTH_ALARM_H
#define DAEMON_HEALTH_ALARM_H

#include <pthread.h>

#include "base/err.h"
#include "daemon/health/pulse.h"

enum { ALARM_TEXT_BYTES = 1024, ALARM_NAME_BYTES = 128 };

struct alarm {
  int fd; /* an eventfd that main polls */
  struct pulses pulses;
  pthread_mutex_t lock;
  err_code_t code; /* of the first failure; ERR_OK: there is none */
  char thread[ALARM_NAME_BYTES];
  char message[ALARM_TEXT_BYTES];
  char origin[ALARM_NAME_BYTES];
};

err_t alarm_init(struct alarm *a);
void alarm_fini(struct alarm *a);

/* Log the calling thread's newest failure, keep it if it is the first one, and wake main. Thread: any. */
void alarm_raise(struct alarm *a, const char *thread, err_code_t err);

/* Return the first failure that was raised, as if it had occurred in the calling thread. Call this once `fd` is
 * readable. Thread: any. */
err_t alarm_failure(struct alarm *a);

#endif
