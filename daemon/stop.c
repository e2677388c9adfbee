/* SPDX-License-Identifier: Apache-2.0 */
/* Stop the daemon: a thread closes the role, while main watches the time and further signals. */
#include "daemon/stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/signals.h"

enum { STEP_MS = 10, OPENING_S = 1, HURRIED_S = 3 };

/* For the thread. */
static struct closing {
  const struct role *role;
  struct errand *opening;
  _Atomic bool is_open; /* or could not be opened */
} closing;

/* The start may have failed, too. The process ends as it was asked to. */
static void end_opening(struct errand *opening)
{
  errand_join(opening);
  err_code_t err = err_give_back(&opening->failure);
  if (err != ERR_OK)
    log_info("start_failed", "error=%s detail=%s at=%s", log_quote(span_of_str(err_text(err))), log_failure(),
             err_origin());
}

static void *close_role(void *context)
{
  struct closing *c = context;

  if (c->opening)
    end_opening(c->opening);
  atomic_store(&c->is_open, true);
  return c->role->close(c->role->service) ? c : NULL;
}

/* A start that takes long decomposes a matrix, say, which nothing interrupts. Leaving it loses nothing: no offset of a
 * query is committed, and the store is safe at any time. */
static void give_up(bool is_open)
{
  if (is_open)
    log_warn("stop_gave_up",
             "note=\"a part of the daemon hangs: the process exits anyway; after a restart, uncommitted "
             "queries are answered again\"");
  else
    log_info("start_left", "note=\"the start takes longer: the process exits in the middle of it\"");
}

/* Wait for the closing thread: at most OPENING_S until the role is open, STOP_LIMIT_S in all, and HURRIED_S after a
 * second signal. A role that is still being opened is hurried once it closes. */
static bool join(const struct closing *c, pthread_t thread, int signals)
{
  int64_t began_ns = clock_now_ns(), end_ns = began_ns + STOP_LIMIT_S * CLOCK_NS_PER_S;
  bool is_hurried = false, knows_it = !c->role->hurry;
  void *closed;

  while (pthread_tryjoin_np(thread, &closed) != 0) {
    bool is_open = atomic_load(&c->is_open);
    if (clock_now_ns() >= (is_open ? end_ns : began_ns + OPENING_S * CLOCK_NS_PER_S)) {
      give_up(is_open);
      return false;
    }
    int signal = signals_next(signals, STEP_MS);
    if (signal && signal != SIGHUP && !is_hurried) {
      is_hurried = true;
      log_info("stopping", "note=\"second signal: at most %d s more\"", HURRIED_S);
      end_ns = clock_now_ns() + HURRIED_S * CLOCK_NS_PER_S;
    }
    if (is_hurried && !knows_it && is_open) {
      c->role->hurry(c->role->service);
      knows_it = true;
    }
  }
  return closed != NULL;
}

bool stop_role(const struct role *role, struct errand *opening, int signals)
{
  pthread_t thread;

  closing = (struct closing){ .role = role, .opening = opening, .is_open = !opening };
  if (pthread_create(&thread, NULL, close_role, &closing) != 0)
    return close_role(&closing) != NULL;
  return join(&closing, thread, signals);
}
