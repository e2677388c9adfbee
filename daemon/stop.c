/* SPDX-License-Identifier: Apache-2.0 */
/* Stop the daemon: a thread closes the role, while main watches the time and further signals. */
#include "daemon/stop.h"

#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/signals.h"

enum { STEP_MS = 10, HURRIED_S = 3 };

/* For the thread. */
static struct closing {
  const struct role *role;
  struct errand *opening;
} closing;

static void *close_role(void *context)
{
  struct closing *c = context;

  if (c->opening)
    errand_join(c->opening);
  return c->role->close(c->role->service) ? c : NULL;
}

static void hurry(const struct closing *c)
{
  log_info("stopping", "note=\"second signal: no longer waiting for Kafka\"");
  if (!c->opening && c->role->hurry)
    c->role->hurry(c->role->service);
}

static void give_up(const struct closing *c)
{
  log_warn("stop_gave_up", "note=\"%s\"",
           c->opening
               ? "the start takes longer: the process exits in the middle of it"
               : "a part of the daemon hangs: the process exits anyway; after a restart, uncommitted queries are "
                 "answered again");
}

/* Wait for the closing thread: at most STOP_LIMIT_S in all, and at most HURRIED_S after a second signal. */
static bool join(const struct closing *c, pthread_t thread, int signals)
{
  int64_t end_ns = clock_now_ns() + STOP_LIMIT_S * CLOCK_NS_PER_S;
  bool is_hurried = false;
  void *closed;

  while (pthread_tryjoin_np(thread, &closed) != 0) {
    if (clock_now_ns() >= end_ns) {
      give_up(c);
      return false;
    }
    int signal = signals_next(signals, STEP_MS);
    if (signal && signal != SIGHUP && !is_hurried) {
      is_hurried = true;
      hurry(c);
      end_ns = clock_now_ns() + HURRIED_S * CLOCK_NS_PER_S;
    }
  }
  return closed != NULL;
}

bool stop_role(const struct role *role, struct errand *opening, int signals)
{
  pthread_t thread;

  closing = (struct closing){ role, opening };
  if (pthread_create(&thread, NULL, close_role, &closing) != 0)
    return close_role(&closing) != NULL;
  return join(&closing, thread, signals);
}
