/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl query: ask queries of the command line or of files. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/ctl/query/ctl_ask.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/text/ctl_json.h"
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
  const char *user; /* of --exclude-seen-by */
  json_t *likes;    /* of --like */
  struct ctl_fields fields;
};

static void request_fini(struct request *r)
{
  ctl_ask_fini(&r->ask);
  json_decref(r->likes);
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

static err_t add_like(void *context, const char *key)
{
  struct request *r = context;

  if (!*key)
    FAIL(ERR_USAGE, "--like expects the key of an item");
  if (!r->likes)
    r->likes = json_array();
  json_t *like = json_pack("{s:s}", "key", key);
  if (!like)
    FAIL(ERR_USAGE, "--like: it is not UTF-8");
  if (json_array_append_new(r->likes, like) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return ERR_OK;
}

/* One item is `like`, which a query of its own may have too: then ctl_fields_give() refuses it. */
static err_t give_likes(const struct request *r, json_t *fields)
{
  if (!r->likes)
    return ERR_OK;
  if (json_array_size(r->likes) > 1)
    return ctl_fields_add(fields, "likes", json_incref(r->likes));
  return ctl_fields_add(fields, "like", json_incref(json_object_get(json_array_get(r->likes, 0), "key")));
}

static err_t take_options(struct request *r, int argc, char **argv)
{
  const struct ctl_option known[] = {
    { "json", .take = add_json, .context = r },
    { "file", .take = add_file, .context = r },
    { "space", .text = &r->space },
    { "k", .number = &r->k, .min = 1, .max = UINT32_MAX },
    { "vector", .text = &r->vector },
    { "like", .take = add_like, .context = r },
    { "exclude-seen-by", .text = &r->user },
    CTL_FIELDS_OPTIONS(&r->fields),
    { "format", .take = ctl_ask_format, .context = &r->ask },
    { "timeout-ms", .number = &r->ask.timeout_ms, .min = 1, .max = CTL_ASK_TIMEOUT_MS_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (optind < argc)
    FAIL(ERR_USAGE, "%s: give a query by its --vector or --like, as --json QUERY, or as a --file of queries",
         argv[optind]);
  if (r->n_given == 0 && !r->vector && !r->likes)
    FAIL(ERR_USAGE, "give a query by its --vector or --like, as --json QUERY, or as a --file of queries");
  return ERR_OK;
}

static err_t make_fields(const struct request *r, json_t **out)
{
  TRY(ctl_fields_make(&r->fields, out));
  if (r->space)
    TRY(ctl_fields_add(*out, "space", json_string(r->space)));
  if (r->k)
    TRY(ctl_fields_add(*out, "k", json_integer((json_int_t)r->k)));
  TRY(give_likes(r, *out));
  if (r->user)
    TRY(ctl_fields_add(*out, "exclude_seen_by", json_string(r->user)));
  return r->vector ? ctl_fields_add_vector(*out, r->vector) : ERR_OK;
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
  AUTO(ctl_json_close) json_t *fields = NULL;

  TRY(ctl_ask_init(options, &r.ask));
  TRY(take_options(&r, argc, argv));
  TRY(add_query_of_options(&r));
  TRY(make_fields(&r, &fields));
  TRY(ctl_queries_give(&r.ask.queries, fields));
  return ctl_ask_run(&r.ask);
}

const struct ctl_command ctl_query_command = {
  .name = "query",
  .arguments = "[--space NAME] [--k N] [--vector NUMBER,... | --like KEY...] [--json QUERY]... [--file FILE.jsonl]..."
               " [--exclude-seen-by USER]" CTL_FIELDS_ARGUMENTS,
  .summary = "send queries through Kafka, and print the answers in the order of the queries",
  .help = "  --space NAME      the space that is searched\n"
          "  --k N             how many hits (default: 10, without --json and --file)\n"
          "  --vector NUMBER,...\n"
          "                    the query's vector: 0.5,1\n"
          "  --like KEY        ask for items like this one, without a vector. May be repeated: like all of them\n"
          "  --json QUERY      a query: '{\"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}'; may be repeated\n"
          "  --file FILE       a file with one query per line; - for standard input; may be repeated. For many\n"
          "                    queries see topk\n"
          "  --exclude-seen-by USER\n"
          "                    leave out what this user has seen\n" CTL_FIELDS_HELP
          "  --format FORMAT   table (default), or json: the answers as received, one per line\n"
          "  --timeout-ms N    how long to wait for the next answer (default: 10000)\n"
          "\n"
          "Other options add to the queries of --json and --file, which have no such field of their own. A query\n"
          "without an id gets one. The exit status is 1 if a query could not be used, was not answered, or\n"
          "was answered with an error.\n",
  .run = run_query,
};
