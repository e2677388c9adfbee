/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of sluicectl. */
#ifndef DAEMON_CTL_CTL_H
#define DAEMON_CTL_CTL_H

#include "base/err.h"

struct ctl_options {
  const char *config_path;
};

struct ctl_command {
  const char *name;
  const char *arguments;
  const char *summary;
  const char *help; /* below usage and summary; lines end with a line break */

  /* argv[0] is the command's name. Failures that do not end the command are said on standard error at once, and
   * counted in the message of the error that it returns at last. ERR_USAGE for a wrong command line. */
  err_t (*run)(const struct ctl_options *options, int argc, char **argv);
};

extern const struct ctl_command ctl_topics_command;
extern const struct ctl_command ctl_load_command;
extern const struct ctl_command ctl_put_command;
extern const struct ctl_command ctl_delete_command;
extern const struct ctl_command ctl_query_command;
extern const struct ctl_command ctl_status_command;
extern const struct ctl_command ctl_rebuild_command;
extern const struct ctl_command ctl_eval_command;

/* Say something on standard error, below the program's name. */
void ctl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
