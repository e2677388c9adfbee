/* SPDX-License-Identifier: Apache-2.0 */
/* Pulses of threads, in a list that only grows: adding needs no lock, and main may read it any time. */
#include "daemon/health/pulse.h"

#include <pthread.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/progress.h"

static _Thread_local struct pulse *own;

/* Other threads that work for this pulse's thread beat it too. */
static void beat(void *pulse)
{
  atomic_store_explicit(&((struct pulse *)pulse)->beat_ns, clock_now_ns(), memory_order_relaxed);
}

void pulse_begin(struct pulses *all, struct pulse *pulse, const char *thread)
{
  pulse->thread = thread;
  atomic_store(&pulse->beat_ns, clock_now_ns());
  pulse->next = atomic_load(&all->first);
  while (!atomic_compare_exchange_weak(&all->first, &pulse->next, pulse))
    ;
  own = pulse;
  pthread_setname_np(pthread_self(), thread); /* for `top -H` and debuggers */
  progress_listener_set((struct progress_listener){ beat, pulse });
}

static void set(int64_t ns)
{
  if (own)
    atomic_store_explicit(&own->beat_ns, ns, memory_order_relaxed);
}

void pulse_beat(void)
{
  set(clock_now_ns());
}

void pulse_rest(void)
{
  set(0);
}

const char *pulses_find_stalled(struct pulses *all, int64_t limit_ns)
{
  int64_t now_ns = clock_now_ns();

  for (struct pulse *p = atomic_load(&all->first); p; p = p->next) {
    int64_t beat_ns = atomic_load(&p->beat_ns);
    if (beat_ns && now_ns - beat_ns > limit_ns)
      return p->thread;
  }
  return NULL;
}
