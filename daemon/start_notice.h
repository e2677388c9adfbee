/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the service manager patient while the daemon opens: large models are decomposed for minutes, and main waits for
 * them. Apart from main.c, which tells the service manager everything else. */
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

/* Start a thread that extends the time limit of the start now and every so often, for some hours at most: a start that
 * takes longer is stuck, and the service manager may end it.
 *
 * n         the thread's until start_notice_end()
 * every_ns  less than 30 s, by which each notice extends the limit
 *
 * Returns ERR_SYSTEM when there is no thread; then it must not be ended. Thread: main. */
err_t start_notice_begin(struct start_notice *n, int64_t every_ns);

/* Stop the thread. Blocks: until it has ended, which is at once. */
void start_notice_end(struct start_notice *n);

#endif
