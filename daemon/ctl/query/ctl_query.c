/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl query: ask queries of the command line or of files. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/ctl/query/ctl_ask.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_max_per.h"
#include "daemon/ctl/text/ctl_option.h"

enum { K_DEFAULT = 10 };

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
    if (!ctl_json_is_blank(span_of(line, (size_t)n)))
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
  const char *space;
  uint64_t k; /* 0: not given */
  const char *vector;
  const char *filter;
  const char *parameters;
  const char *user; /* of --exclude-seen-by */
  const char *like;
  struct max_per max_per; /* n 0: not given */
  const char *mmr;
  const char *shown; /* names of attributes */
  struct ctl_boosts boosts;
};

static void request_fini(struct request *r)
{
  ctl_ask_fini(&r->ask);
}

static err_t add_json(void *context, const char *text)
{
  struct request *r = context;

  return ctl_ask_add(&r->ask, "--json", ++r->n_given, span_of_str(text));
}

static err_t add_file(void *context, const char *path)
{
  struct request *r = context;

  r->n_given++;
  return read_file(&r->ask, path);
}

/* Without this check, an empty shell variable would do nothing. */
static err_t verify_key(const char *option, const char *what, const char *key)
{
  if (key && !*key)
    FAIL(ERR_USAGE, "%s needs %s: it is empty", option, what);
  return ERR_OK;
}

static err_t take_options(struct request *r, int argc, char **argv)
{
  const struct ctl_option known[] = {
    { "json", .take = add_json, .context = r },
    { "file", .take = add_file, .context = r },
    { "space", .text = &r->space },
    { "k", .number = &r->k, .min = 1, .max = UINT32_MAX },
    { "vector", .text = &r->vector },
    { "filter", .text = &r->filter },
    { "parameters", .text = &r->parameters },
    { "like", .text = &r->like },
    { "exclude-seen-by", .text = &r->user },
    { "max-per", .take = ctl_max_per_take, .context = &r->max_per },
    { "mmr", .text = &r->mmr },
    { "show", .text = &r->shown },
    { "boost", .take = ctl_boosts_take, .context = &r->boosts },
    { "boost-if", .take = ctl_boosts_take_if, .context = &r->boosts },
    { "now", .take = ctl_boosts_take_now, .context = &r->boosts },
    { "format", .take = ctl_ask_format, .context = &r->ask },
    { "timeout-ms", .number = &r->ask.timeout_ms, .min = 1, .max = CTL_ASK_TIMEOUT_MS_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  TRY(verify_key("--exclude-seen-by", "a user", r->user));
  TRY(verify_key("--like", "a key", r->like));
  TRY(verify_key("--show", "names of attributes, such as title,price", r->shown));
  if (optind < argc)
    FAIL(ERR_USAGE, "%s: give a query by its --vector or --like, as --json QUERY, or as a --file of queries",
         argv[optind]);
  if (r->n_given == 0 && !r->vector && !r->like)
    FAIL(ERR_USAGE, "give a query by its --vector or --like, as --json QUERY, or as a --file of queries");
  if (r->parameters && !r->filter)
    FAIL(ERR_USAGE, "--parameters are for a filter: give it as --filter TEXT");
  return ERR_OK;
}

/* Without --json and --file, the options are a query. */
static err_t add_query_of_options(struct request *r)
{
  if (r->n_given > 0)
    return ERR_OK;
  r->k = r->k ? r->k : K_DEFAULT;
  return ctl_ask_add(&r->ask, "query", 1, span_of_str("{}"));
}

static err_t run_query(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(request_fini) struct request r = { 0 };

  TRY(ctl_ask_init(options, &r.ask));
  TRY(take_options(&r, argc, argv));
  TRY(add_query_of_options(&r));
  if (r.space)
    TRY(ctl_queries_space(&r.ask.queries, r.space));
  if (r.k)
    TRY(ctl_queries_k(&r.ask.queries, r.k));
  if (r.vector)
    TRY(ctl_queries_vector(&r.ask.queries, r.vector));
  if (r.filter)
    TRY(ctl_queries_set_filter(&r.ask.queries, r.filter, r.parameters));
  if (r.user)
    TRY(ctl_queries_exclude_seen_by(&r.ask.queries, r.user));
  if (r.like)
    TRY(ctl_queries_like(&r.ask.queries, r.like));
  if (r.max_per.n)
    TRY(ctl_queries_max_per(&r.ask.queries, &r.max_per));
  if (r.mmr)
    TRY(ctl_queries_mmr(&r.ask.queries, r.mmr));
  if (r.shown)
    TRY(ctl_queries_show(&r.ask.queries, r.shown));
  TRY(ctl_queries_set_boosts(&r.ask.queries, &r.boosts));
  return ctl_ask_run(&r.ask);
}

const struct ctl_command ctl_query_command = {
  .name = "query",
  .arguments = "[--space NAME] [--k N] [--vector NUMBER,... | --like KEY] [--json QUERY]... [--file FILE.jsonl]..."
               " [--filter TEXT]"
               " [--exclude-seen-by USER] [--max-per ATTRIBUTE:N] [--mmr DIVERSITY[:CANDIDATES]] [--show ATTRIBUTE,...]"
               " [--boost WEIGHT:ATTRIBUTE[:HALF_LIFE]]... [--boost-if WEIGHT:FILTER]... [--now TIME]",
  .summary = "send queries through Kafka, and print the answers in the order of the queries",
  .help = "  --space NAME      the space that is searched\n"
          "  --k N             how many hits (default: 10, without --json and --file)\n"
          "  --vector NUMBER,...\n"
          "                    the query's vector: 0.5,1\n"
          "  --like KEY        ask for items like this one, without a vector\n"
          "  --json QUERY      a query: '{\"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}'; may be repeated\n"
          "  --file FILE       a file with one query per line; - for standard input; may be repeated. For many\n"
          "                    queries see topk\n"
          "  --filter TEXT     a filter for all of these queries: 'price < $1 and country in $2'\n"
          "  --parameters JSON the values of $1, $2, ... in it: '[20, [\"de\", \"at\"]]'\n"
          "  --exclude-seen-by USER\n"
          "                    leave out what this user has seen\n"
          "  --max-per ATTRIBUTE:N\n"
          "                    at most N hits with the same value of this attribute\n"
          "  --mmr DIVERSITY[:CANDIDATES]\n"
          "                    choose hits that differ from each other, among the best CANDIDATES (default: 5 times\n"
          "                    as many): the larger DIVERSITY, up to 1, the more they differ. 0.3 is a start\n"
          "  --show ATTRIBUTE,...\n"
          "                    show these attributes of each hit: title,price; all with '*'\n"
          "  --boost WEIGHT:ATTRIBUTE[:HALF_LIFE]\n"
          "                    add WEIGHT times this attribute to the score of each item: 0.2:popularity. Of a time,\n"
          "                    add WEIGHT times 2^(-age / HALF_LIFE): 0.5:published:7d; s, m, h and d are its units.\n"
          "                    May be repeated\n"
          "  --boost-if WEIGHT:FILTER\n"
          "                    add WEIGHT to the score of each item that this filter admits:\n"
          "                    \"0.3:section = 'graphics'\". May be repeated\n"
          "  --now TIME        count ages in boosts to this time: 2026-11-22T12:00:00Z, milliseconds since 1970, or\n"
          "                    90s, 10m, 2h, 7d ago (default: when the query is sent)\n"
          "  --format FORMAT   table (default), or json: the answers as received, one per line\n"
          "  --timeout-ms N    how long to wait for the next answer (default: 10000)\n"
          "\n"
          "Other options add to the queries of --json and --file, which have no such field of their own. A query\n"
          "without an id gets one. The exit status is 1 if a query could not be used, was not answered, or\n"
          "was answered with an error.\n",
  .run = run_query,
};
