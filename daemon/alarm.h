/* How a thread tells main that it cannot go on: main then stops all in order and leaves with a failure. */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include "base/err.h"

struct alarm {
  int fd; /* an eventfd that main polls */
};

err_t alarm_init(struct alarm *a);
void alarm_fini(struct alarm *a);

/* Log the calling thread's newest failure and wake main. Thread: any. */
void alarm_raise(struct alarm *a, const char *thread, err_code_t err);

#endif
