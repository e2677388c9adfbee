/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl put: write one item. */
#include <getopt.h>
#include <string.h>

#include "daemon/ctl/items/ctl_write_one.h"

static err_t run_put(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(region_fini) struct region region = { 0 };
  struct ctl_record record;

  TRY(ctl_write_one_parse(argc, argv, 2, "a key and a value"));
  struct span key = span_of_str(argv[optind]);
  if (strcmp(argv[optind + 1], "null") == 0) { /* as in a file for load */
    TRY(ctl_record_verify_key(key));
    record = (struct ctl_record){ .key = key, .is_delete = true };
  } else {
    TRY(ctl_record_make(key, span_of_str(argv[optind + 1]), &region, &record));
  }
  TRY(ctl_context_open(options, &ctx));
  return ctl_write_one(ctx, &record);
}

const struct ctl_command ctl_put_command = {
  .name = "put",
  .arguments = "KEY JSON-VALUE",
  .summary = "write one item, and wait until queries see it",
  .help = "Example:\n"
          "  sluicectl put gimp '{\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}'\n"
          "  sluicectl put gimp '{\"attributes\": {\"price\": 9.5, \"tags\": [\"art\"], \"old\": null}}'\n"
          "The value is the same as in a file for load. Parts and attributes that it does not name stay unchanged.\n"
          "null removes an attribute, and null in place of the value deletes the item.\n",
  .run = run_put,
};
