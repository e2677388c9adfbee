/* SPDX-License-Identifier: Apache-2.0 */
/* Open a role, step it, and close it, while signals are answered and the service manager is told how it goes. */
#include "daemon/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "daemon/exit_status.h"
#include "daemon/health/liveness.h"
#include "daemon/reload/reload.h"
#include "daemon/signals.h"
#include "daemon/stop.h"

enum { STEP_MS = 20, OPEN_STEP_MS = 5, STATUS_EVERY_MS = 1000, NOTICE_EVERY_MS = 5000 };

/* A bilinear model with dimension 8,192 takes half an hour to decompose with the reference LAPACK. A start that takes
 * longer than the limit is stuck, and the service manager may end it. */
enum { OPEN_LIMIT_S = 4 * 3600 };

struct serving {
  const struct role *role;
  struct config *config;
  struct reload reload;
  int signals;
  struct errand opening; /* the thread that opens the role */
  bool is_opening;
  bool is_reload_due; /* SIGHUP came while the role was opened */
  bool must_stop;
  struct liveness liveness;
  bool was_ready;
};

static void note_stop(struct serving *s, const char *note)
{
  log_info("stopping", "note=\"%s\"", note);
  sd_notify(0, "STOPPING=1");
  s->must_stop = true;
}

/* ---- The start ---- */

static err_code_t open_role(void *context)
{
  const struct serving *s = context;

  return s->role->open(s->role->service, s->config);
}

/* The configuration cannot change while it is read: a reload waits. */
static void note_early_signal(struct serving *s, int signal)
{
  if (signal == SIGHUP)
    s->is_reload_due = true;
  else if (signal)
    note_stop(s, "the start is given up");
}

/* Open the role in a thread, and extend the service manager's time limit meanwhile: it may take minutes. If a signal
 * asks to stop, the thread is left to stop_role(). */
static err_t start(struct serving *s)
{
  int64_t began_ns = clock_now_ns(), due_ns = began_ns;

  s->is_opening = errand_begin("open", open_role, s, &s->opening);
  if (!s->is_opening)
    FAIL(ERR_SYSTEM, "the thread that opens the daemon cannot be started");
  while (!errand_is_over(&s->opening)) {
    int64_t now_ns = clock_now_ns();
    if (now_ns >= due_ns && now_ns - began_ns < OPEN_LIMIT_S * CLOCK_NS_PER_S) {
      sd_notify(0, "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=opening models, store and Kafka clients");
      due_ns = now_ns + NOTICE_EVERY_MS * CLOCK_NS_PER_MS;
    }
    note_early_signal(s, signals_next(s->signals, OPEN_STEP_MS));
    if (s->must_stop)
      return ERR_OK;
  }
  errand_join(&s->opening);
  s->is_opening = false;
  return err_give_back(&s->opening.failure);
}

/* ---- The run ---- */

/* Tell the service manager the status, readiness, and that all threads make progress. */
static void notify(struct serving *s)
{
  char line[256];
  bool is_ready = !readiness_reason(s->role->readiness);

  s->role->print_line(s->role->service, line, sizeof line);
  if (!liveness_is_given(&s->liveness, &s->role->alarm->pulses)) {
    sd_notifyf(0, "STATUS=%s", line);
  } else if (is_ready && !s->was_ready) {
    sd_notifyf(0, "READY=1\nSTATUS=%s", line);
    s->was_ready = true;
  } else {
    sd_notifyf(0, "STATUS=%s\n%s", line, s->was_ready ? "WATCHDOG=1" : "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1");
  }
}

static void note_signal(struct serving *s, int signal)
{
  if (signal == SIGHUP || s->is_reload_due)
    reload_and_notify(&s->reload, s->was_ready);
  s->is_reload_due = false;
  if (signal && signal != SIGHUP)
    note_stop(s, s->role->stop_note);
}

static err_t run(struct serving *s)
{
  const struct role *role = s->role;
  struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN }, { .fd = role->alarm->fd, .events = POLLIN } };
  int64_t notify_due_ns = 0;

  for (;;) {
    if (poll(fds, 2, STEP_MS) < 0 && errno != EINTR)
      FAIL(ERR_SYSTEM, "poll: %s", strerror(errno));
    if (fds[1].revents)
      return alarm_failure(role->alarm);
    note_signal(s, signals_next(s->signals, 0));
    if (s->must_stop)
      return ERR_OK;
    TRY(liveness_check_clock(&s->liveness));
    TRY(role->step(role->service));
    if (clock_now_ns() >= notify_due_ns || (!s->was_ready && !readiness_reason(role->readiness))) {
      notify(s);
      log_write_repeats(clock_now_ns());
      notify_due_ns = clock_now_ns() + STATUS_EVERY_MS * CLOCK_NS_PER_MS;
    }
  }
}

int serve(struct config *config, const struct role *role, int signals)
{
  static struct serving s; /* static, because a thread that is left behind may use it until the process has ended */

  s = (struct serving){ .role = role, .config = config, .signals = signals };
  reload_init(config, &s.reload);
  err_code_t err = start(&s);
  if (err == ERR_OK && !s.must_stop)
    err = run(&s);
  if (err != ERR_OK)
    log_error("fatal", "error=%s detail=%s at=%s", log_quote(span_of_str(err_text(err))), log_failure(), err_origin());
  bool is_closed = stop_role(role, s.is_opening ? &s.opening : NULL, signals);
  log_write_repeats(clock_now_ns() + LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S);
  log_info("stopped", "status=%d", exit_status_of(err));
  if (!is_closed) {
    fflush(NULL);
    _exit(exit_status_of(err));
  }
  reload_fini(&s.reload);
  return exit_status_of(err);
}
