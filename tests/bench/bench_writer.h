/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes 10,000 updates a second beside searches, in batches every 10 ms. It is switched on and off in
 * turns, so that idle and live times are from one run. */
#ifndef TESTS_BENCH_BENCH_WRITER_H
#define TESTS_BENCH_BENCH_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { BENCH_WRITER_MAX = 1000 }; /* updates of a batch */

struct bench_writer {
  void (*write)(void *context, size_t n); /* apply n <= BENCH_WRITER_MAX updates in one batch */
  void *context;
  _Atomic bool is_live; /* off at first */
  _Atomic bool is_over;
  pthread_t thread;
};

/* Start the thread. The fields write and context are set. Ends the program if there is no thread. */
void bench_writer_start(struct bench_writer *w);

/* Switch it on or off. */
void bench_writer_set(struct bench_writer *w, bool is_live);

void bench_writer_stop(struct bench_writer *w);

#endif
