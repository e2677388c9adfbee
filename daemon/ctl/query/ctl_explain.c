/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl explain: ask why items are among the hits of a query, or not. */
#include <getopt.h>

#include "daemon/ctl/query/ctl_ask.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_option.h"
#include "ingest/json/json_bytes.h"

static err_t take_options(struct ctl_ask *a, int argc, char **argv)
{
  const struct ctl_option known[] = {
    { "format", .take = ctl_ask_format, .context = a },
    { "timeout-ms", .number = &a->timeout_ms, .min = 1, .max = CTL_ASK_TIMEOUT_MS_MAX },
    { 0 },
  };

  return ctl_option_take(known, "a query", argc, argv);
}

/* The field that asks for explanations. keys [n] */
static err_t make_fields(char **keys, int n, json_t **out)
{
  json_t *list = json_array();

  for (int i = 0; i < n; i++)
    json_array_append_new(list, json_bytes_make(span_of_str(keys[i])));
  *out = json_object();
  return ctl_fields_add(*out, "explain", list);
}

static err_t run_explain(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_ask_fini) struct ctl_ask a = { 0 };
  AUTO(ctl_json_close) json_t *fields = NULL;

  TRY(ctl_ask_init(options, &a));
  TRY(take_options(&a, argc, argv));
  if (argc - optind < 2 || argc - optind > 1 + QUERY_EXPLAIN_MAX)
    FAIL(ERR_USAGE, "explain expects a query and 1 to %d keys", QUERY_EXPLAIN_MAX);
  TRY(ctl_ask_add(&a, "query", 1, span_of_str(argv[optind])));
  TRY(make_fields(argv + optind + 1, argc - optind - 1, &fields));
  TRY(ctl_queries_give(&a.queries, fields));
  return ctl_ask_run(&a);
}

const struct ctl_command ctl_explain_command = {
  .name = "explain",
  .arguments = "[--format FORMAT] [--timeout-ms N] QUERY KEY...",
  .summary = "ask why items are among the hits of a query, or not",
  .help = "  --format FORMAT   table (default), or json: the answer as received\n"
          "  --timeout-ms N    how long to wait for the answer (default: 10000)\n"
          "\n"
          "Example:\n"
          "  sluicectl explain '{\"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}' gimp\n"
          "For each of up to 16 keys the answer says whether there is such an item, whether it has a part in the\n"
          "space, whether the query admits it, and if not why, its exact score, and its rank or how far the last hit\n"
          "is above it.\n",
  .run = run_explain,
};
