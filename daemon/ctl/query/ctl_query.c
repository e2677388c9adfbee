/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl query: ask queries of the command line or of files. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/ctl/query/ctl_ask.h"
#include "daemon/ctl/writer/ctl_item_line.h"

static void close_file(FILE **file)
{
  if (*file && *file != stdin)
    fclose(*file);
}

static err_t read_file(struct ctl_ask *a, const char *path)
{
  AUTO(close_file) FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
  AUTO(mem_free) char *line = NULL;
  size_t capacity = 0;
  ssize_t n;

  if (!file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  for (uint64_t number = 1; (n = getline(&line, &capacity, file)) >= 0; number++) {
    if (!ctl_item_line_is_blank(span_of(line, (size_t)n)))
      TRY(ctl_ask_add(a, "line", number, span_of(line, (size_t)n)));
  }
  if (ferror(file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", path, strerror(errno));
  return ERR_OK;
}

/* The command line. NULL: an option was not given. */
struct request {
  struct ctl_ask ask;
  uint64_t n_given;
  const char *filter;
  const char *parameters;
  const char *user; /* of --exclude-seen-by */
  const char *like;
};

static void request_fini(struct request *r)
{
  ctl_ask_fini(&r->ask);
}

/* Without this check, an empty shell variable would do nothing. */
static err_t take_key(const char *option, const char *what, const char **out)
{
  if (!*optarg)
    FAIL(ERR_USAGE, "%s needs %s: it is empty", option, what);
  *out = optarg;
  return ERR_OK;
}

static err_t take_option(struct request *r, int option)
{
  switch (option) {
  case 'j':
    return ctl_ask_add(&r->ask, "--json", ++r->n_given, span_of_str(optarg));
  case 'f':
    r->n_given++;
    return read_file(&r->ask, optarg);
  case 'F':
    r->filter = optarg;
    return ERR_OK;
  case 'P':
    r->parameters = optarg;
    return ERR_OK;
  case 'u':
    return take_key("--exclude-seen-by", "a user", &r->user);
  case 'l':
    return take_key("--like", "a key", &r->like);
  case 'o':
    return ctl_ask_format(&r->ask, optarg);
  default:
    return ctl_ask_timeout(&r->ask, optarg);
  }
}

static err_t take_options(struct request *r, int argc, char **argv)
{
  static const struct option known[] = {
    { "json", required_argument, NULL, 'j' },
    { "file", required_argument, NULL, 'f' },
    { "filter", required_argument, NULL, 'F' },
    { "parameters", required_argument, NULL, 'P' },
    { "like", required_argument, NULL, 'l' },
    { "exclude-seen-by", required_argument, NULL, 'u' },
    { "format", required_argument, NULL, 'o' },
    { "timeout-ms", required_argument, NULL, 't' },
    { 0 },
  };
  int option;

  while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    if (option == '?' || option == ':')
      FAIL(ERR_USAGE, "%s: unknown option of query, or its value is missing", argv[optind - 1]);
    TRY(take_option(r, option));
  }
  if (optind < argc)
    FAIL(ERR_USAGE, "%s: give a query as --json QUERY, or a file of queries as --file FILE", argv[optind]);
  if (r->n_given == 0)
    FAIL(ERR_USAGE, "give a query as --json QUERY, or a file of queries as --file FILE");
  if (r->parameters && !r->filter)
    FAIL(ERR_USAGE, "--parameters are for a filter: give it as --filter TEXT");
  return ERR_OK;
}

static err_t run_query(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(request_fini) struct request r = { 0 };

  TRY(ctl_ask_init(options, &r.ask));
  TRY(take_options(&r, argc, argv));
  if (r.filter)
    TRY(ctl_queries_set_filter(&r.ask.queries, r.filter, r.parameters));
  if (r.user)
    TRY(ctl_queries_exclude_seen_by(&r.ask.queries, r.user));
  if (r.like)
    TRY(ctl_queries_like(&r.ask.queries, r.like));
  return ctl_ask_run(&r.ask);
}

const struct ctl_command ctl_query_command = {
  .name = "query",
  .arguments = "[--json QUERY]... [--file FILE.jsonl]... [--filter TEXT] [--like KEY]"
               " [--exclude-seen-by USER]",
  .summary = "send queries through Kafka, and print the answers in the order of the queries",
  .help = "  --json QUERY      a query: '{\"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}'; may be repeated\n"
          "  --file FILE       a file with one query per line; - for standard input; may be repeated\n"
          "  --filter TEXT     a filter for all of these queries: 'price < $1 and country in $2'\n"
          "  --parameters JSON the values of $1, $2, ... in it: '[20, [\"de\", \"at\"]]'\n"
          "  --like KEY        ask for items like this one, in place of the queries' vectors\n"
          "  --exclude-seen-by USER\n"
          "                    leave out what this user has seen\n"
          "  --format FORMAT   table (default), or json: the answers as received, one per line\n"
          "  --timeout-ms N    how long to wait for the next answer (default: 10000)\n"
          "\n"
          "A query without an id gets one. The exit status is 1 if a query could not be used, was not answered, or\n"
          "was answered with an error.\n",
  .run = run_query,
};
