/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/signals.h"

enum { STEP_MS = 10, HURRIED_S = 3 };

static void *close_service(void *context)
{
  struct service *s = context;

  return service_close(s) ? s : NULL;
}

static bool is_asked_again(int signals)
{
  struct pollfd fd = { .fd = signals, .events = POLLIN };
  int signal = poll(&fd, 1, STEP_MS) > 0 ? signals_next(signals) : 0;

  return signal != 0 && signal != SIGHUP;
}

/* Wait for the thread; the second signal brings the end nearer. */
static bool join(struct service *s, pthread_t thread, int signals)
{
  int64_t end_ns = clock_now_ns() + STOP_LIMIT_S * CLOCK_NS_PER_S;
  bool is_hurried = false;
  void *closed;

  while (pthread_tryjoin_np(thread, &closed) != 0) {
    if (clock_now_ns() >= end_ns) {
      log_warn("stop_gave_up", "note=\"something does not end: the process ends without it, and takes up after a "
                               "restart what was not committed\"");
      return false;
    }
    if (is_asked_again(signals) && !is_hurried) {
      is_hurried = true;
      log_info("stopping", "note=\"asked again: not waiting for Kafka any longer\"");
      service_hurry(s);
      end_ns = clock_now_ns() + HURRIED_S * CLOCK_NS_PER_S;
    }
  }
  return closed != NULL;
}

bool stop_service(struct service *s, int signals)
{
  pthread_t thread;

  if (pthread_create(&thread, NULL, close_service, s) != 0)
    return service_close(s);
  return join(s, thread, signals);
}
