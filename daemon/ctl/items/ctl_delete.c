/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl delete: write a tombstone for one item. */
#include <getopt.h>

#include "daemon/ctl/items/ctl_write_one.h"

static err_t run_delete(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;

  TRY(ctl_write_one_parse(argc, argv, 1, "a key"));
  struct ctl_record record = { .key = span_of_str(argv[optind]), .is_delete = true };
  TRY(ctl_record_verify_key(record.key));
  TRY(ctl_context_open(options, &ctx));
  return ctl_write_one(ctx, &record);
}

const struct ctl_command ctl_delete_command = {
  .name = "delete",
  .arguments = "KEY",
  .summary = "delete one item, and wait until queries no longer see it",
  .help = "A tombstone is written to the catalogue topic, whether or not the item exists. The output says whether\n"
          "it existed, unless others write at the same time.\n",
  .run = run_delete,
};
