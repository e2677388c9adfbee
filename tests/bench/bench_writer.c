/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of the writer: each batch has the updates that are due since the last one. */
#include "tests/bench/bench_writer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/bench/bench_clock.h"

enum { UPDATES_PER_MS = 10, PERIOD_MS = 10 };

/* Write every 10 ms, or as soon as the last batch is published. */
static void *run(void *context)
{
  struct bench_writer *w = context;
  double last = bench_wall_ms();

  while (!atomic_load(&w->is_over)) {
    double now = bench_wall_ms();
    if (!atomic_load(&w->is_live)) {
      clock_sleep_ns(CLOCK_NS_PER_MS);
      last = bench_wall_ms();
    } else if (now - last < PERIOD_MS) {
      clock_sleep_ns((int64_t)((PERIOD_MS - (now - last)) * 1e6));
    } else {
      size_t n = (size_t)((now - last) * UPDATES_PER_MS);
      w->write(w->context, n < BENCH_WRITER_MAX ? n : BENCH_WRITER_MAX);
      last = now;
    }
  }
  return NULL;
}

void bench_writer_start(struct bench_writer *w)
{
  atomic_store(&w->is_live, false);
  atomic_store(&w->is_over, false);
  if (pthread_create(&w->thread, NULL, run, w)) {
    perror("bench: error: pthread_create");
    exit(1);
  }
}

void bench_writer_set(struct bench_writer *w, bool is_live)
{
  atomic_store(&w->is_live, is_live);
}

void bench_writer_stop(struct bench_writer *w)
{
  atomic_store(&w->is_over, true);
  pthread_join(w->thread, NULL);
}
