/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of sluiced. Thread: main. */
#ifndef DAEMON_SETUP_COMMAND_LINE_H
#define DAEMON_SETUP_COMMAND_LINE_H

#include <stdbool.h>

struct command_line {
  const char *config_path;
  bool is_check; /* --check-config */
};

/* No exit status: the program goes on. */
enum { COMMAND_LINE_FINE = -1 };

/* Read the command line. Answers --help and --version itself.
 *
 * Returns COMMAND_LINE_FINE; otherwise the exit status that the program ends with.
 */
int command_line_read(int argc, char **argv, struct command_line *out);

#endif
