/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread tells main that it cannot go on: main then stops all in order and leaves with a failure. And, by its
 * pulse, that it does. */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include <pthread.h>

#include "base/err.h"
#include "daemon/pulse.h"

enum { ALARM_TEXT_BYTES = 1024, ALARM_NAME_BYTES = 128 };

struct alarm {
  int fd; /* an eventfd that main polls */
  struct pulses pulses;
  pthread_mutex_t lock;
  err_code_t code; /* of the first thread that raised it; ERR_OK: none has */
  char thread[ALARM_NAME_BYTES];
  char message[ALARM_TEXT_BYTES];
  char origin[ALARM_NAME_BYTES];
};

err_t alarm_init(struct alarm *a);
void alarm_fini(struct alarm *a);

/* Log the calling thread's newest failure, keep it if it is the first, and wake main. Thread: any. */
void alarm_raise(struct alarm *a, const char *thread, err_code_t err);

/* The first failure that was raised, as if the calling thread had met it. To be called once `fd` is readable.
 * Thread: any. */
err_t alarm_failure(struct alarm *a);

#endif
