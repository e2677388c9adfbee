/* SPDX-License-Identifier: Apache-2.0 */
/* A handler of SIGBUS, which may only do what is safe in any place. */
#include "base/mapped_read.h"

#include <signal.h>
#include <unistd.h>

static const char text[] =
    "event=mapped_read_failed reason=\"a file that is mapped, of the store or of a model, cannot be "
    "read: it was cut, or the disk fails\" remedy=\"see the kernel log (journalctl -k)\"\n";

static int exit_status;

static void explain(int signal)
{
  (void)signal;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
    _exit(exit_status); /* there is no place left to say it */
  _exit(exit_status);
}

void mapped_read_explain(int status)
{
  struct sigaction action = { .sa_handler = explain };

  exit_status = status;
  sigaction(SIGBUS, &action, NULL);
}
