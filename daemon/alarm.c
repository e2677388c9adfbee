#include "daemon/alarm.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

err_t alarm_init(struct alarm *a)
{
  a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (a->fd < 0)
    FAIL(ERR_SYSTEM, "eventfd: %s", strerror(errno));
  return ERR_OK;
}

void alarm_fini(struct alarm *a)
{
  close(a->fd);
}

void alarm_raise(struct alarm *a, const char *thread, err_code_t err)
{
  log_error("fatal", "thread=%s error=%s detail=%s at=%s", thread, log_quote(span_of_str(err_text(err))), log_failure(),
            err_origin());
  if (eventfd_write(a->fd, 1) < 0)
    log_error("fatal", "thread=%s detail=\"main cannot be woken\"", thread);
}
