/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl seen: show what is kept of a user. */
#include <getopt.h>
#include <stdio.h>

#include "daemon/ctl/ctl_items.h"
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
  static const struct option known[] = { { "json", no_argument, NULL, 'j' }, { 0 } };
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  bool prints_json = false, is_found;
  struct span page;
  int option;

  while ((option = getopt_long(argc, argv, "+:", known, NULL)) != -1) {
    if (option != 'j')
      FAIL(ERR_USAGE, "unknown option %s; a user that begins with - needs -- before it", argv[optind - 1]);
    prints_json = true;
  }
  if (argc - optind != 1)
    FAIL(ERR_USAGE, "seen expects a user");
  TRY(ctl_context_open_for_http(options, &ctx));
  TRY(ctl_context_verify_catalogue(ctx->config));
  TRY(ctl_items_page(ctx, "seen", span_of_str(argv[optind]), &is_found, &page));
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
