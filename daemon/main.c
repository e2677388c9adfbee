/* SPDX-License-Identifier: Apache-2.0 */
/* sluiced, the daemon: it starts and stops the service, reacts to signals, and talks to the service manager. service.c
 * opens and closes the daemon's parts. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/mapped_read.h"
#include "daemon/check.h"
#include "daemon/command_line.h"
#include "daemon/exit_status.h"
#include "daemon/journal/journal.h"
#include "daemon/merge_run.h"
#include "daemon/reload.h"
#include "daemon/service.h"
#include "daemon/signals.h"
#include "daemon/start_notice.h"
#include "daemon/stop.h"
#include "kernels/device.h"

enum { STEP_MS = 20, STATUS_EVERY_MS = 1000, NOTICE_EVERY_MS = 5000 };

/* jemalloc reads its settings from a variable of this name. With a background thread, freed memory returns to the
 * system even while nothing is allocated. */
extern const char *malloc_conf;
const char *malloc_conf = "background_thread:true";

/* Tell the service manager the status, readiness, and that all threads make progress. */
static void notify(struct service *s, bool *was_ready)
{
  char line[256];

  status_line(&s->status, line, sizeof line);
  if (!service_is_alive(s)) {
    sd_notifyf(0, "STATUS=%s", line);
  } else if (!status_not_ready(&s->status) && !*was_ready) {
    sd_notifyf(0, "READY=1\nSTATUS=%s", line);
    *was_ready = true;
  } else {
    sd_notifyf(0, "STATUS=%s\n%s", line, *was_ready ? "WATCHDOG=1" : "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1");
  }
}

/* Run until a signal asks to stop, or a thread fails. */
static err_t serve(struct service *s, struct reload *r, int signals)
{
  struct pollfd fds[] = { { .fd = signals, .events = POLLIN }, { .fd = s->alarm.fd, .events = POLLIN } };
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
      log_info("stopping", "note=\"answering the accepted queries\"");
      sd_notify(0, "STOPPING=1");
      return ERR_OK;
    }
    TRY(service_step(s));
    if (clock_now_ns() >= notify_due_ns || (!was_ready && !status_not_ready(&s->status))) {
      notify(s, &was_ready);
      log_write_repeats(clock_now_ns());
      notify_due_ns = clock_now_ns() + STATUS_EVERY_MS * CLOCK_NS_PER_MS;
    }
  }
}

/* If the notice fails, nothing of the service was opened. It is all zeros then, which service_close() accepts. */
static err_t open_service(const struct config *config, struct service *s)
{
  struct start_notice notice;

  TRY(start_notice_begin(&notice, NOTICE_EVERY_MS * CLOCK_NS_PER_MS));
  err_code_t err = service_open(config, s);
  start_notice_end(&notice);
  return err;
}

static int run(struct config *config, int signals)
{
  AUTO(reload_fini) struct reload r = { 0 };
  static struct service service = { .alarm.fd = -1 }; /* static, because it is large */

  reload_init(config, &r);
  err_code_t err = open_service(config, &service);

  if (err == ERR_OK) {
    log_info("started", "version=%s isa=%s config=%s", SLUICE_VERSION, isa_name(service.status.isa), config->path);
    err = serve(&service, &r, signals);
  }
  if (err != ERR_OK)
    log_error("fatal", "error=%s detail=%s at=%s", log_quote(span_of_str(err_text(err))), log_failure(), err_origin());
  bool is_closed = stop_service(&service, signals);
  log_write_repeats(clock_now_ns() + LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S);
  log_info("stopped", "status=%d", exit_status_of(err));
  if (!is_closed) { /* threads still run: exit handlers would unload libraries that they use */
    fflush(NULL);
    _exit(exit_status_of(err));
  }
  return exit_status_of(err);
}

/* Read the configuration and print all problems. Returns false if it cannot be used. */
static bool read_config(const char *path, struct config **out)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  err_code_t err = config_read(path, &problems, out);

  if (err != ERR_OK)
    fprintf(stderr, "sluiced: %s\n", err_message());
  problems_print(&problems, "sluiced");
  return err == ERR_OK && problems.n == 0;
}

static int check_only(const char *path)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  err_code_t err = check_file(path, &problems);

  problems_print(&problems, "sluiced");
  if (err != ERR_OK)
    return fprintf(stderr, "sluiced: %s\n", err_message()), exit_status_of(err);
  if (problems.n)
    return EXIT_STATUS_CONFIG;
  printf("%s: fine\n", path);
  return EXIT_STATUS_OK;
}

int main(int argc, char **argv)
{
  AUTO(config_close) struct config *config = NULL;
  struct command_line line;
  int status = command_line_read(argc, argv, &line);

  if (status != COMMAND_LINE_FINE)
    return status;
  mapped_read_explain(EXIT_STATUS_FAILURE);
  if (line.is_check)
    return check_only(line.config_path);
  int signals = signals_open(); /* first, so that a signal during the slow start stops the daemon in order */
  if (signals < 0)
    return perror("sluiced: cannot open a descriptor for signals"), EXIT_STATUS_FAILURE;
  if (!read_config(line.config_path, &config))
    return EXIT_STATUS_CONFIG;
  log_set_level(config->log_level);
  journal_begin();
  return config->role == CONFIG_ROLE_MERGE ? merge_run(config, signals) : run(config, signals);
}
