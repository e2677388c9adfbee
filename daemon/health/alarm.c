/* SPDX-License-Identifier: Apache-2.0 */
/* The alarm: an eventfd that wakes main, and the first failure that a thread raised. */
#include "daemon/health/alarm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

err_t alarm_init(struct alarm *a)
{
  *a = (struct alarm){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
  if (a->fd < 0)
    FAIL(ERR_SYSTEM, "eventfd: %s", strerror(errno));
  pthread_mutex_init(&a->lock, NULL);
  return ERR_OK;
}

void alarm_fini(struct alarm *a)
{
  close(a->fd);
  pthread_mutex_destroy(&a->lock);
}

void alarm_raise(struct alarm *a, const char *thread, err_code_t err)
{
  log_error("thread_failed", "thread=%s error=%s detail=%s at=%s", thread, log_quote(span_of_str(err_text(err))),
            log_failure(), err_origin());
  pthread_mutex_lock(&a->lock);
  if (a->code == ERR_OK) {
    a->code = err;
    snprintf(a->thread, sizeof a->thread, "%s", thread);
    snprintf(a->message, sizeof a->message, "%s", err_message());
    snprintf(a->origin, sizeof a->origin, "%s", err_origin());
  }
  pthread_mutex_unlock(&a->lock);
  if (eventfd_write(a->fd, 1) < 0)
    log_error("fatal", "thread=%s detail=\"cannot wake the main thread\"", thread);
}

err_t alarm_failure(struct alarm *a)
{
  struct alarm first;

  pthread_mutex_lock(&a->lock);
  first = *a;
  pthread_mutex_unlock(&a->lock);
  if (first.code == ERR_OK)
    FAIL(ERR_SYSTEM, "a thread failed: see the event thread_failed");
  char *colon = strrchr(first.origin, ':');
  if (colon)
    *colon = '\0';
  return err_set(first.code, first.origin, colon ? atoi(colon + 1) : 0, "%s thread: %s", first.thread, first.message);
}
