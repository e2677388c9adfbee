/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl backup: copy the store while the daemon serves it, and verify the copy. */
#include "base/mem.h"
#include "daemon/ctl/store/ctl_store.h"
#include "store/store_backup.h"

static err_t run_backup(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(mem_free) char *store = NULL;
  const char *to;

  TRY(ctl_store_parse(argc, argv, true, &to));
  TRY(ctl_store_path(options, &store));
  TRY(store_backup_copy(store, to));
  return ctl_store_verify(to);
}

const struct ctl_command ctl_backup_command = {
  .name = "backup",
  .arguments = "DIRECTORY",
  .summary = "copy the store while the daemon serves it, and verify the copy",
  .help = "The directory must be new or empty, and outside the store. The copy has the items and the positions of one\n"
          "moment, and what users have seen of another one. Run it on the daemon's machine, as the daemon's user. "
          "While it\n"
          "runs, the store cannot reuse the pages that updates free, so its file may grow. If it was killed, the next "
          "backup\n"
          "or a restart of the daemon makes them usable again.\n",
  .run = run_backup,
};
