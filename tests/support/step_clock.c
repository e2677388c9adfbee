/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: a wall clock that a test can step. Waits by the wall clock behave as in the kernel: a step
 * also moves the end of a wait that is under way. The monotonic clock stays the machine's.
 *
 * STEP_CLOCK names a file with a little-endian int64: nanoseconds to add to the wall clock. The file is mapped, so what
 * a test writes takes effect at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_NS = 20000000, NS_PER_S = 1000000000 };

static const _Atomic int64_t *offset_ns;

__attribute__((constructor)) static void map_offset(void)
{
  const char *path = getenv("STEP_CLOCK");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, fd, 0);

  if (p == MAP_FAILED)
    abort();
  close(fd);
  offset_ns = p;
}

static int is_wall(clockid_t clock)
{
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
  if (syscall(SYS_clock_gettime, clock, now) != 0)
    return -1;
  if (is_wall(clock) && offset_ns) {
    int64_t ns = now->tv_sec * (int64_t)NS_PER_S + now->tv_nsec + atomic_load(offset_ns);
    *now = (struct timespec){ ns / NS_PER_S, ns % NS_PER_S };
  }
  return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
  struct timespec now;

  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *tv = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
  return 0;
}

time_t time(time_t *out)
{
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  if (out)
    *out = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *now, int base)
{
  return clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* Wait until a time of the wall clock, in slices of SLICE_NS, to notice a step. */
static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
  for (;;) {
    struct timespec now, end;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t left = (until->tv_sec - now.tv_sec) * (int64_t)NS_PER_S + until->tv_nsec - now.tv_nsec;
    if (left <= 0)
      return ETIMEDOUT;
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t ns = end.tv_nsec + (left < SLICE_NS ? left : SLICE_NS);
    end.tv_sec += ns / NS_PER_S;
    end.tv_nsec = ns % NS_PER_S;
    int error = pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &end);
    if (error != ETIMEDOUT)
      return error;
  }
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
  int error = wait_until((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);

  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
