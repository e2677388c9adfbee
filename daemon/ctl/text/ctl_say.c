/* SPDX-License-Identifier: Apache-2.0 */
/* Print a message with the program's name in front, as other command-line tools do. */
#include "daemon/ctl/text/ctl_say.h"

#include <stdarg.h>
#include <stdio.h>

void ctl_say(const char *format, ...)
{
  va_list args;

  fputs("sluicectl: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}
