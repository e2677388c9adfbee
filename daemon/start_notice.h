/* SPDX-License-Identifier: Apache-2.0 */
/* Extend the service manager's time limit while the daemon opens. Main cannot do it: it may be busy for minutes with
 * the decomposition of large models. main.c sends all other notices. */
#ifndef DAEMON_START_NOTICE_H
#define DAEMON_START_NOTICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct start_notice {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  int64_t every_ns;
  bool is_over;
};

/* Start a thread that extends the time limit of the start, now and every `every_ns`. It stops after four hours: a start
 * that takes longer is stuck, and the service manager may end it.
 *
 * n         used by the thread until start_notice_end()
 * every_ns  must be less than 30 s, because each notice extends the limit by 30 s
 *
 * Returns ERR_SYSTEM when the thread cannot be started; then do not call start_notice_end(). Thread: main. */
err_t start_notice_begin(struct start_notice *n, int64_t every_ns);

/* Stop the thread. Blocks: briefly, until it has ended. */
void start_notice_end(struct start_notice *n);

#endif
