/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a sluicectl command, and the list of all commands. Each has a file of its own; ctl.c has the table.
 *
 * A new command needs a file ctl_NAME.c, a line below, a line in the table in ctl.c, and its file in
 * daemon/CMakeLists.txt.
 */
#ifndef DAEMON_CTL_CTL_COMMAND_H
#define DAEMON_CTL_CTL_COMMAND_H

#include <stdio.h>

#include "base/err.h"

/* Options that every command takes. */
struct ctl_options {
  const char *config_path;
};

struct ctl_command {
  const char *name;
  const char *arguments;
  const char *summary;
  const char *help; /* printed below usage and summary; every line ends with a line break; "" if there is no more */
  void (*print_more)(FILE *out); /* prints the end of the help, if it comes from a table; NULL otherwise */

  /* Run the command. A failure that does not end it is printed to standard error at once and counted in the error that
   * is returned at the end.
   *
   * argv  argv[0] is the command's name
   *
   * Returns ERR_USAGE for a wrong command line.
   */
  err_t (*run)(const struct ctl_options *options, int argc, char **argv);
};

extern const struct ctl_command ctl_topics_command;
extern const struct ctl_command ctl_load_command;
extern const struct ctl_command ctl_put_command;
extern const struct ctl_command ctl_delete_command;
extern const struct ctl_command ctl_get_command;
extern const struct ctl_command ctl_explain_command;
extern const struct ctl_command ctl_seen_command;
extern const struct ctl_command ctl_dead_letters_command;
extern const struct ctl_command ctl_tail_command;
extern const struct ctl_command ctl_map_command;
extern const struct ctl_command ctl_watch_command;
extern const struct ctl_command ctl_query_command;
extern const struct ctl_command ctl_topk_command;
extern const struct ctl_command ctl_bench_command;
extern const struct ctl_command ctl_layout_command;
extern const struct ctl_command ctl_status_command;
extern const struct ctl_command ctl_wait_command;
extern const struct ctl_command ctl_rebuild_command;
extern const struct ctl_command ctl_model_command;
extern const struct ctl_command ctl_backup_command;
extern const struct ctl_command ctl_restore_command;
extern const struct ctl_command ctl_verify_command;
extern const struct ctl_command ctl_eval_command;
extern const struct ctl_command ctl_settings_command;

#endif
