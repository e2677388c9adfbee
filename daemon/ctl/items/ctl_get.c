/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl get: show stored items. */
#include <getopt.h>
#include <stdio.h>

#include "base/log.h"
#include "daemon/ctl/ctl_data_page.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/text/ctl_print.h"
#include "daemon/ctl/text/ctl_say.h"

/* Print the value alone, as put takes it. */
static err_t print_value(struct span page)
{
  AUTO(ctl_json_close) json_t *item = json_loadb((const char *)page.p, page.n, JSON_ALLOW_NUL, NULL);
  const json_t *value = json_object_get(item, "value");

  if (!value || !ctl_print_json_value(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17), stdout))
    FAIL(ERR_SYSTEM, "the daemon did not answer with an item");
  return ERR_OK;
}

static err_t get(struct ctl_context *ctx, char **keys, int n, bool is_value)
{
  int n_missing = 0;

  for (int i = 0; i < n; i++) {
    struct span page;
    bool is_found;
    TRY(ctl_data_page_get(ctx, "items", span_of_str(keys[i]), &is_found, &page));
    if (!is_found) {
      ctl_say("there is no item %s", log_quote(span_of_str(keys[i])));
      n_missing++;
    } else if (is_value) {
      TRY(print_value(page));
    } else {
      ctl_print_json(page, stdout);
    }
  }
  if (n_missing)
    FAIL(ERR_ITEM, "%d of %d items are missing", n_missing, n);
  return ERR_OK;
}

static err_t run_get(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  bool is_value = false;
  const struct ctl_option known[] = { { "value", .is_given = &is_value }, { 0 } };

  TRY(ctl_option_take(known, "a key", argc, argv));
  if (optind == argc)
    FAIL(ERR_USAGE, "get expects a key");
  TRY(ctl_context_open_for_http(options, &ctx));
  TRY(ctl_context_verify_catalogue(ctx->config));
  return get(ctx, argv + optind, argc - optind, is_value);
}

const struct ctl_command ctl_get_command = {
  .name = "get",
  .arguments = "[--value] KEY...",
  .summary = "show items as the daemon has stored them",
  .help = "  --value   print only the value, as put takes it\n"
          "\n"
          "Each item is a line that load takes: key and value. Its member \"record\" says which record of the\n"
          "catalogue topic changed the item last; load ignores it. The item is the one in the daemon's store: all\n"
          "parts, also those of spaces that are not configured, and attributes, also if it is expired or embargoed.\n"
          "The exit status is 1 if there is no such item. The daemon's setting http.data says who may ask.\n",
  .run = run_get,
};
