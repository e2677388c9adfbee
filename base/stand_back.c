/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities of threads in Linux: the calls that are said to be about processes are about one thread. */
#include "base/stand_back.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

/* A thread of this nice value has about a tenth of the weight of others. */
enum { LOWER_NICE = 10 };

/* How long a thread that was brought forward stays there, in times the limit. */
enum { FRONT = 10 };

static bool set_policy(pid_t thread, int policy)
{
  struct sched_param param = { 0 };

  return sched_setscheduler(thread, policy, &param) == 0;
}

/* Every thread may lower its priority, and not every one may raise it again: that depends on capabilities, limits and
 * filters of system calls. So a thread that is there for nothing else tries both. */
static void *try_it(void *context)
{
  struct stand_back *b = context;

  b->is_possible = set_policy(0, SCHED_IDLE) && set_policy(0, b->policy);
  return NULL;
}

bool stand_back_init(struct stand_back *b)
{
  pthread_t thread;

  b->thread = gettid();
  b->policy = sched_getscheduler(0);
  if (b->policy != SCHED_OTHER && b->policy != SCHED_BATCH)
    return false;
  if (pthread_create(&thread, NULL, try_it, b) == 0)
    pthread_join(thread, NULL);
  return b->is_possible;
}

void stand_back_enter(struct stand_back *b)
{
  int64_t now_ns = clock_now_ns();

  if (!b || !b->is_possible || now_ns < atomic_load(&b->front_until_ns))
    return;
  b->has_entered = true;
  atomic_store(&b->since_ns, now_ns); /* before the policy: relieving acts only on a thread whose since_ns is set */
  if (!set_policy(0, SCHED_IDLE) || now_ns < atomic_load(&b->front_until_ns)) /* it was brought forward on its way */
    stand_back_leave(b);
}

/* If the other thread brings this one forward just now, that does what this does. */
void stand_back_leave(struct stand_back *b)
{
  if (!b || !b->has_entered)
    return;
  b->has_entered = false;
  set_policy(0, b->policy);
  atomic_store(&b->since_ns, 0);
}

/* Does nothing if the thread is in front. */
static void bring_forward(struct stand_back *b, int64_t since_ns, int64_t until_ns)
{
  if (!since_ns || !atomic_compare_exchange_strong(&b->since_ns, &since_ns, 0))
    return;
  if (atomic_load(&b->front_until_ns) < until_ns)
    atomic_store(&b->front_until_ns, until_ns);
  set_policy(b->thread, b->policy);
}

/* If the thread leaves and enters again just now, it is brought forward too early: that harms nobody. */
void stand_back_relieve(struct stand_back *b, int64_t limit_ns)
{
  int64_t since_ns = atomic_load(&b->since_ns), now_ns = clock_now_ns();

  if (now_ns - since_ns > limit_ns)
    bring_forward(b, since_ns, now_ns + FRONT * limit_ns);
}

void stand_back_end(struct stand_back *b)
{
  atomic_store(&b->front_until_ns, INT64_MAX);
  bring_forward(b, atomic_load(&b->since_ns), INT64_MAX);
}

bool stand_back_for_good(void)
{
  return getpriority(PRIO_PROCESS, 0) >= LOWER_NICE || setpriority(PRIO_PROCESS, 0, LOWER_NICE) == 0;
}
