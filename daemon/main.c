/* SPDX-License-Identifier: Apache-2.0 */
/* sluiced, the daemon: the command line and the configuration. serve.c runs the role: service.c or merge_service.c,
 * which open and close the daemon's parts. */
#include <stdio.h>

#include "base/mapped_read.h"
#include "daemon/exit_status.h"
#include "daemon/journal/journal.h"
#include "daemon/merge/merge_service.h"
#include "daemon/serve.h"
#include "daemon/service.h"
#include "daemon/setup/check.h"
#include "daemon/setup/command_line.h"
#include "daemon/signals.h"

/* jemalloc reads its settings from a variable of this name. With a background thread, freed memory returns to the
 * system even while nothing is allocated. */
extern const char *malloc_conf;
const char *malloc_conf = "background_thread:true";

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
  if (!read_config(line.config_path, &config)) /* a file that does not answer can still be left by a signal */
    return EXIT_STATUS_CONFIG;
  int signals = signals_open(); /* from now on, a signal stops the daemon in order */
  if (signals < 0)
    return perror("sluiced: cannot open a descriptor for signals"), EXIT_STATUS_FAILURE;
  log_set_level(config->log_level);
  journal_begin();
  return serve(config, config->role == CONFIG_ROLE_MERGE ? &merge_role : &service_role, signals);
}
