/* SPDX-License-Identifier: Apache-2.0 */
/* A cnd_timedwait() that turns deadlines of the wall clock into deadlines of the monotonic clock. */
#include "ingest/kafka/kafka_waits.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

#include "base/clock.h"

static _Atomic bool is_used;

bool kafka_waits_are_steady(void)
{
  return atomic_load(&is_used);
}

static struct timespec plus(struct timespec t, struct timespec later, struct timespec earlier)
{
  t.tv_sec += later.tv_sec - earlier.tv_sec;
  t.tv_nsec += later.tv_nsec - earlier.tv_nsec;
  if (t.tv_nsec < 0) {
    t.tv_nsec += CLOCK_NS_PER_S;
    t.tv_sec--;
  } else if (t.tv_nsec >= CLOCK_NS_PER_S) {
    t.tv_nsec -= CLOCK_NS_PER_S;
    t.tv_sec++;
  }
  return t;
}

/* Return the monotonic time of a deadline of the wall clock. A caller computes its deadline right before it waits.
 * After a spurious wakeup it calls again with the same deadline. The wall clock may have been stepped by then, so the
 * first result is kept and used again. */
static const struct timespec *steady_deadline(const struct timespec *wall)
{
  static _Thread_local struct {
    struct timespec wall, steady;
  } last;
  struct timespec wall_now, steady_now;

  if (last.wall.tv_sec != wall->tv_sec || last.wall.tv_nsec != wall->tv_nsec) {
    clock_gettime(CLOCK_REALTIME, &wall_now);
    clock_gettime(CLOCK_MONOTONIC, &steady_now);
    last.wall = *wall;
    last.steady = plus(steady_now, *wall, wall_now);
  }
  return &last.steady;
}

/* In glibc, cnd_t and mtx_t are pthread_cond_t and pthread_mutex_t under other names. */
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t) && sizeof(mtx_t) <= sizeof(pthread_mutex_t),
              "C11 threads are POSIX threads");

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's begin with underscores */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
  const struct timespec *steady = steady_deadline(until);

  if (!atomic_load_explicit(&is_used, memory_order_relaxed))
    atomic_store(&is_used, true);
  int error = steady->tv_sec < 0 ? ETIMEDOUT
                                 : pthread_cond_clockwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex,
                                                          CLOCK_MONOTONIC, steady);
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
