/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl put: write one item. */
#include <getopt.h>

#include "daemon/ctl/ctl_write_one.h"

static err_t run_put(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(region_fini) struct region region = { 0 };
  struct ctl_record record;

  TRY(ctl_write_one_parse(argc, argv, 2, "a key and a value"));
  TRY(ctl_item_make(span_of_str(argv[optind]), span_of_str(argv[optind + 1]), &region, &record));
  TRY(ctl_context_open(options, &ctx));
  return ctl_write_one(ctx, &record);
}

const struct ctl_command ctl_put_command = {
  .name = "put",
  .arguments = "KEY JSON-VALUE",
  .summary = "write one item, and wait until queries see it",
  .help = "Example:\n"
          "  sluicectl put gimp '{\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}'\n"
          "The value is the same as in a file for load. Parts in spaces that it does not name stay unchanged.\n",
  .run = run_put,
};
