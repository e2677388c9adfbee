/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks read with clock_gettime(2). */
#include "base/clock.h"

#include <time.h>

int64_t clock_now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_boot_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_unix_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_unix_ms(void)
{
  return clock_unix_ns() / CLOCK_NS_PER_MS;
}

int64_t clock_watch_step(struct clock_watch *w)
{
  int64_t ahead_ns = clock_unix_ns() - clock_now_ns();
  int64_t by_ns = w->ahead_ns ? ahead_ns - w->ahead_ns : 0;
  w->ahead_ns = ahead_ns;
  return by_ns > CLOCK_NS_PER_S || by_ns < -CLOCK_NS_PER_S ? by_ns / CLOCK_NS_PER_MS : 0;
}

void clock_sleep_ns(int64_t ns)
{
  struct timespec span = { .tv_sec = ns / CLOCK_NS_PER_S, .tv_nsec = ns % CLOCK_NS_PER_S };

  nanosleep(&span, NULL);
}
