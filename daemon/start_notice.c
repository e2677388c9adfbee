/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that extends the time limit of the start. */
#include "daemon/start_notice.h"

#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/clock.h"

/* A bilinear model with dimension 8,192 takes half an hour to decompose with the reference LAPACK. */
enum { LIMIT_S = 4 * 3600 };

static struct timespec time_after(int64_t ns)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  ns += t.tv_nsec;
  t.tv_sec += ns / CLOCK_NS_PER_S;
  t.tv_nsec = ns % CLOCK_NS_PER_S;
  return t;
}

static void *notify(void *context)
{
  struct start_notice *n = context;
  int64_t started_ns = clock_now_ns();

  pthread_mutex_lock(&n->mutex);
  while (!n->is_over && clock_now_ns() - started_ns < LIMIT_S * CLOCK_NS_PER_S) {
    struct timespec until = time_after(n->every_ns);
    sd_notify(0, "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=opening models, store and Kafka clients");
    while (!n->is_over && pthread_cond_timedwait(&n->ended, &n->mutex, &until) == 0)
      continue;
  }
  pthread_mutex_unlock(&n->mutex);
  return NULL;
}

err_t start_notice_begin(struct start_notice *n, int64_t every_ns)
{
  pthread_condattr_t monotonic;

  *n = (struct start_notice){ .mutex = PTHREAD_MUTEX_INITIALIZER, .every_ns = every_ns };
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&n->ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int error = pthread_create(&n->thread, NULL, notify, n);
  if (error)
    FAIL(ERR_SYSTEM, "cannot start the thread that extends the start-up time: %s", strerror(error));
  return ERR_OK;
}

void start_notice_end(struct start_notice *n)
{
  pthread_mutex_lock(&n->mutex);
  n->is_over = true;
  pthread_cond_signal(&n->ended);
  pthread_mutex_unlock(&n->mutex);
  pthread_join(n->thread, NULL);
  pthread_cond_destroy(&n->ended);
}
