/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl verify: read every record of a backup, or of the store of a daemon that is stopped. */
#include "base/mem.h"
#include "daemon/ctl/store/ctl_store.h"

static err_t run_verify(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(mem_free) char *store = NULL;
  const char *directory;

  TRY(ctl_store_parse(argc, argv, false, &directory));
  if (!directory)
    TRY(ctl_store_path(options, &store));
  return ctl_store_verify(directory ? directory : store);
}

const struct ctl_command ctl_verify_command = {
  .name = "verify",
  .arguments = "[DIRECTORY]",
  .summary = "read every record of a backup, or of the store of a daemon that is stopped",
  .help =
      "Verifies the checksum of every record, and that the tables agree. The store of a running daemon is refused:\n"
      "make a backup, which is verified at once.\n",
  .run = run_verify,
};
