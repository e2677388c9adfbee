/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl restore: verify a backup, and make it the store of a daemon that is stopped. */
#include "base/mem.h"
#include "daemon/ctl/store/ctl_store.h"
#include "store/store_backup.h"

static err_t run_restore(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(mem_free) char *store = NULL;
  const char *from;

  TRY(ctl_store_parse(argc, argv, true, &from));
  TRY(ctl_store_path(options, &store));
  TRY(ctl_store_verify(from));
  TRY(store_backup_copy(from, store));
  return ctl_store_verify(store);
}

const struct ctl_command ctl_restore_command = {
  .name = "restore",
  .arguments = "DIRECTORY",
  .summary = "verify a backup, and make it the store of a daemon that is stopped",
  .help =
      "Stop the daemon and move its store away first: the directory store.path must not exist, or be empty. Run it\n"
      "as the daemon's user. When the daemon starts, it reads the catalogue topic from the backup's positions.\n"
      "If the topic no longer has them, it does what catalogue.on_discontinuity says.\n",
  .run = run_restore,
};
