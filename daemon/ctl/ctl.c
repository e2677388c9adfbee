/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl: the table of commands, the shared options and the help. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/edit_distance.h"
#include "base/log.h"
#include "base/mapped_read.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/kafka/kafka_closing.h"

#ifndef SLUICE_VERSION
#define SLUICE_VERSION "unknown"
#endif

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char config_path_default[] = "/etc/sluice/sluice.yaml";

static const struct ctl_command *const commands[] = {
  &ctl_topics_command,  &ctl_map_command,    &ctl_load_command,         &ctl_put_command,      &ctl_delete_command,
  &ctl_get_command,     &ctl_query_command,  &ctl_topk_command,         &ctl_bench_command,    &ctl_explain_command,
  &ctl_seen_command,    &ctl_tail_command,   &ctl_dead_letters_command, &ctl_status_command,   &ctl_layout_command,
  &ctl_watch_command,   &ctl_wait_command,   &ctl_rebuild_command,      &ctl_model_command,    &ctl_backup_command,
  &ctl_restore_command, &ctl_verify_command, &ctl_eval_command,         &ctl_settings_command,
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* Options that stand before or after any command. */
struct request {
  struct ctl_options options;
  bool wants_help;
  bool wants_version;
  bool is_verbose;
  bool lacks_config; /* --config is the last word */
};

static const struct ctl_command *find_command(const char *name)
{
  for (size_t i = 0; i < N_COMMANDS; i++) {
    if (strcmp(commands[i]->name, name) == 0)
      return commands[i];
  }
  return NULL;
}

/* Which command was probably meant? */
static const char *nearest_command(const char *name)
{
  const char *nearest = "";
  size_t least = SIZE_MAX;

  for (size_t i = 0; i < N_COMMANDS; i++) {
    size_t distance = edit_distance(commands[i]->name, name);
    if (distance < least) {
      least = distance;
      nearest = commands[i]->name;
    }
  }
  return nearest;
}

static void print_help(void)
{
  puts("usage: sluicectl [--config FILE] COMMAND ...\n"
       "\n"
       "Control a running sluiced, through Kafka and its HTTP address. eval, settings, backup, restore\n"
       "and verify need no daemon.\n");
  for (size_t i = 0; i < N_COMMANDS; i++)
    printf("  %s%s%s\n      %s\n", commands[i]->name, *commands[i]->arguments ? " " : "", commands[i]->arguments,
           commands[i]->summary);
  printf("\n"
         "  --config FILE   the daemon's configuration (default: %s)\n"
         "  --verbose       show messages of the Kafka client\n"
         "  --help          show this help; after a command, the help of that command\n"
         "  --version       show the version\n"
         "\n"
         "First steps, with a space called SPACE and vectors of two numbers:\n"
         "  sluicectl topics create\n"
         "  sluicectl put gimp '{\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}'\n"
         "  sluicectl query --json '{\"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}'\n"
         "\n"
         "Exit status: 0 success, 1 failure, 2 wrong command line.\n",
         config_path_default);
}

static void print_command_help(const struct ctl_command *command)
{
  printf("usage: sluicectl [--config FILE] %s%s%s\n\n%c%s.\n", command->name, *command->arguments ? " " : "",
         command->arguments, toupper((unsigned char)*command->summary), command->summary + 1);
  if (*command->help)
    printf("\n%s", command->help);
  if (command->print_more)
    command->print_more(stdout);
}

/* Is argv[*i] the shared option `name`? If so, take its value, which follows as the next argument or after a '='. */
static bool take_value(int argc, char **argv, int *i, const char *name, const char **value)
{
  size_t n = strlen(name);

  if (strncmp(argv[*i], name, n) != 0)
    return false;
  if (argv[*i][n] == '=') {
    *value = argv[*i] + n + 1;
    return true;
  }
  if (argv[*i][n] != '\0' || *i + 1 >= argc)
    return false;
  *value = argv[++*i];
  return true;
}

/* Remove the shared options from the command line, up to "--". Returns the length of what remains. */
static int take_shared(int argc, char **argv, struct request *request)
{
  int n_left = 1;
  int i = 1;

  for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (take_value(argc, argv, &i, "--config", &request->options.config_path)) {
      request->lacks_config |= !*request->options.config_path;
      continue;
    }
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
      request->wants_help = true;
    else if (strcmp(argv[i], "--version") == 0)
      request->wants_version = true;
    else if (strcmp(argv[i], "--verbose") == 0)
      request->is_verbose = true;
    else if (strcmp(argv[i], "--config") == 0)
      request->lacks_config = true;
    else
      argv[n_left++] = argv[i];
  }
  while (i < argc)
    argv[n_left++] = argv[i++];
  argv[n_left] = NULL;
  return n_left;
}

/* An empty word names no file and no key, and messages about it would name nothing. The values of options verify
 * themselves (ctl_option_take()). */
static err_t verify_words(const struct ctl_command *command, int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    if (!*argv[i] && *argv[i - 1] != '-')
      FAIL(ERR_USAGE, "an argument of %s is empty: is a variable not set?", command->name);
  }
  return ERR_OK;
}

static err_t run(const struct ctl_command *command, const struct request *request, int argc, char **argv)
{
  opterr = 0;
  optind = 0; /* 0, not 1, also resets glibc's record of permuted arguments */
  TRY(verify_words(command, argc, argv));
  return command->run(&request->options, argc, argv);
}

static int run_command(const struct ctl_command *command, const struct request *request, int argc, char **argv)
{
  err_code_t result = run(command, request, argc, argv);

  if (result == ERR_OK)
    return EXIT_OK;
  ctl_say("%s", err_message());
  if (result == ERR_USAGE)
    ctl_say("see `sluicectl %s --help`", command->name);
  return result == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

/* Output that could not be written, as on a full disk, is a failure. */
static int flush_output(int status)
{
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  ctl_say("the output could not be written to its end%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
  return status == EXIT_OK ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
  struct request request = { .options.config_path = config_path_default };
  int n = take_shared(argc, argv, &request);
  const struct ctl_command *command = n > 1 ? find_command(argv[1]) : NULL;

  if (request.wants_version) {
    puts("sluicectl " SLUICE_VERSION);
    return flush_output(EXIT_OK);
  }
  if (request.wants_help && (command || n == 1)) {
    command ? print_command_help(command) : print_help();
    return flush_output(EXIT_OK);
  }
  if (request.lacks_config) {
    ctl_say("--config expects a file; `sluicectl --help` shows how");
    return EXIT_USAGE;
  }
  if (!command) {
    if (n > 1)
      ctl_say("unknown command \"%s\"; the nearest is %s; `sluicectl --help` lists all", argv[1],
              nearest_command(argv[1]));
    else
      ctl_say("no command given; `sluicectl --help` lists all");
    return EXIT_USAGE;
  }
  mapped_read_explain(EXIT_FAILED);
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on the size of files fails with EFBIG */
  log_set_level(request.is_verbose ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
  int status = flush_output(run_command(command, &request, n - 1, argv + 1));
  if (kafka_closing_log_left() > 0) { /* exit handlers would unload libraries that threads still use */
    fflush(NULL);
    _exit(status);
  }
  return status;
}
