/* SPDX-License-Identifier: Apache-2.0 */
/* A handler of SIGBUS, which may only do what is safe in any place. */
#include "base/mapped_read.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static const char terminal_text[] =
    "event=mapped_read_failed reason=\"a file that is mapped, of the store or of a model, cannot be read or written: "
    "it "
    "was cut, or the disk is full or fails\" remedy=\"see the kernel log (journalctl -k)\"\n";

static char text[sizeof terminal_text + 3]; /* with the journal's priority */
static int exit_status;

static void explain(int signal)
{
  (void)signal;
  if (write(STDERR_FILENO, text, strlen(text)) < 0)
    _exit(exit_status); /* there is no place left to say it */
  _exit(exit_status);
}

void mapped_read_explain(int status)
{
  struct sigaction action = { .sa_handler = explain };

  exit_status = status;
  snprintf(text, sizeof text, "%s%s", log_is_journal() ? "<3>" : "", terminal_text);
  sigaction(SIGBUS, &action, NULL);
}
