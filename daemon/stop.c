/* SPDX-License-Identifier: Apache-2.0 */
/* Stop the daemon: a thread closes the service, while main watches the time and further signals. */
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

static bool has_second_signal(int signals)
{
  struct pollfd fd = { .fd = signals, .events = POLLIN };
  int signal = poll(&fd, 1, STEP_MS) > 0 ? signals_next(signals) : 0;

  return signal != 0 && signal != SIGHUP;
}

/* Wait for the closing thread: at most STOP_LIMIT_S in all, and at most HURRIED_S after a second signal. */
static bool join(struct service *s, pthread_t thread, int signals)
{
  int64_t end_ns = clock_now_ns() + STOP_LIMIT_S * CLOCK_NS_PER_S;
  bool is_hurried = false;
  void *closed;

  while (pthread_tryjoin_np(thread, &closed) != 0) {
    if (clock_now_ns() >= end_ns) {
      log_warn("stop_gave_up", "note=\"a part of the daemon hangs: the process exits anyway; after a restart, "
                               "uncommitted queries are answered again\"");
      return false;
    }
    if (has_second_signal(signals) && !is_hurried) {
      is_hurried = true;
      log_info("stopping", "note=\"second signal: no longer waiting for Kafka\"");
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
