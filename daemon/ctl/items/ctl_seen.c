/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl seen: show what is kept of a user. */
#include <getopt.h>
#include <stdio.h>

#include "daemon/ctl/ctl_data_page.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/text/ctl_print.h"

static err_t print_items(struct span page)
{
  AUTO(ctl_json_close) json_t *seen = json_loadb((const char *)page.p, page.n, JSON_ALLOW_NUL, NULL);
  size_t i;
  json_t *item;

  if (!json_is_array(json_object_get(seen, "items")))
    FAIL(ERR_SYSTEM, "the daemon did not answer with what a user has seen");
  json_array_foreach(json_object_get(seen, "items"), i, item)
  {
    ctl_print_key(item, stdout);
    putchar('\n');
  }
  return ERR_OK;
}

static err_t run_seen(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  bool prints_json = false, is_found;
  const struct ctl_option known[] = { { "json", .is_given = &prints_json }, { 0 } };
  struct span page;

  TRY(ctl_option_take(known, "a user", argc, argv));
  if (argc - optind != 1)
    FAIL(ERR_USAGE, "seen expects a user");
  TRY(ctl_context_open_for_http(options, &ctx));
  TRY(ctl_context_verify_catalogue(ctx->config));
  TRY(ctl_data_page_get(ctx, "seen", span_of_str(argv[optind]), &is_found, &page));
  if (!prints_json)
    return print_items(page);
  ctl_print_json(page, stdout);
  return ERR_OK;
}

const struct ctl_command ctl_seen_command = {
  .name = "seen",
  .arguments = "[--json] USER",
  .summary = "show the items that a user has seen, as the daemon has stored them",
  .help =
      "  --json   print them as JSON: {\"user\": \"7\", \"items\": [\"alien\", \"heat\"]}\n"
      "\n"
      "One key per line, in the order of the records; a key may be there twice. A user of whom nothing is kept has\n"
      "seen nothing. The daemon's setting http.data says who may ask.\n",
  .run = run_seen,
};
