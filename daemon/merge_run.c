/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of main in the role merge: signals, the service manager, and the readiness. */
#include "daemon/merge_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "daemon/exit_status.h"
#include "daemon/liveness.h"
#include "daemon/merge/merge_service.h"
#include "daemon/reload.h"
#include "daemon/signals.h"
#include "daemon/stop.h"

enum { STEP_MS = 20, NOTIFY_EVERY_MS = 1000 };

static void notify(struct merge_service *s, struct liveness *l, bool *was_ready)
{
  char line[256];
  bool is_ready = status_not_ready(&s->status) == NULL;

  merge_service_line(s, line, sizeof line);
  if (!liveness_is_given(l, &s->alarm.pulses))
    sd_notifyf(0, "STATUS=%s", line);
  else
    sd_notifyf(0, "STATUS=%s\n%s", line,
               is_ready && !*was_ready ? "READY=1"
               : *was_ready            ? "WATCHDOG=1"
                                       : "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1");
  *was_ready |= is_ready;
}

static err_t serve(struct merge_service *s, struct reload *r, int signals)
{
  struct pollfd fds[] = { { .fd = signals, .events = POLLIN }, { .fd = s->alarm.fd, .events = POLLIN } };
  struct liveness liveness = { 0 };
  bool was_ready = false;
  int64_t notify_due_ns = 0;

  for (;;) {
    if (poll(fds, 2, STEP_MS) < 0 && errno != EINTR)
      FAIL(ERR_SYSTEM, "poll: %s", strerror(errno));
    if (fds[1].revents)
      return alarm_failure(&s->alarm);
    if (fds[0].revents && signals_next(signals) == SIGHUP) {
      reload_and_notify(r, was_ready);
    } else if (fds[0].revents) {
      log_info("stopping", "note=\"queries that wait for parts are left to other merges\"");
      sd_notify(0, "STOPPING=1");
      return ERR_OK;
    }
    merge_service_step(s);
    TRY(liveness_check_clock(&liveness));
    if (clock_now_ns() >= notify_due_ns) {
      notify(s, &liveness, &was_ready);
      log_write_repeats(clock_now_ns());
      notify_due_ns = clock_now_ns() + NOTIFY_EVERY_MS * CLOCK_NS_PER_MS;
    }
  }
}

static volatile sig_atomic_t late_status; /* for end_late(), set before the alarm */

/* If a part of the daemon hangs, the process ends anyway: what was not committed is read again. */
static void end_late(int signal)
{
  static const char text[] = "event=stop_gave_up level=warn\n";

  (void)signal;
  ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
  (void)n; /* the status is the same if nobody reads the line */
  _exit(late_status);
}

int merge_run(struct config *config, int signals)
{
  AUTO(reload_fini) struct reload r = { 0 };
  static struct merge_service service = { .alarm.fd = -1 }; /* static, because it is large */

  reload_init(config, &r);
  err_code_t err = merge_service_open(config, &service);
  if (err == ERR_OK) {
    log_info("started", "version=%s role=merge config=%s", SLUICE_VERSION, config->path);
    err = serve(&service, &r, signals);
  }
  if (err != ERR_OK)
    log_error("fatal", "error=%s detail=%s at=%s", log_quote(span_of_str(err_text(err))), log_failure(), err_origin());
  late_status = exit_status_of(err);
  signal(SIGALRM, end_late);
  alarm(STOP_LIMIT_S);
  bool is_closed = merge_service_close(&service);
  log_write_repeats(clock_now_ns() + LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S);
  log_info("stopped", "status=%d", exit_status_of(err));
  if (!is_closed) { /* threads still run: exit handlers would unload libraries that they use */
    fflush(NULL);
    _exit(exit_status_of(err));
  }
  return exit_status_of(err);
}
