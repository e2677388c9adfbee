/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a store, and the check of every record in one. Thread: any. Blocks: while it reads all. */
#ifndef STORE_STORE_BACKUP_H
#define STORE_STORE_BACKUP_H

#include "base/err.h"
#include "store/store.h"

/* Copy a store with what users have seen, if it has that. Another process may be serving and writing the store. Each of
 * the two is copied in one transaction, so it has the items and the positions of one moment, and without free pages.
 * Meanwhile a process that writes cannot reuse the pages that it frees.
 *
 * Model files that came through a topic are copied too. A store that cannot be written is copied if no process has it
 * open.
 *
 * to  a directory outside the store that does not exist, or that is empty; its parent must exist. It is locked
 * meanwhile
 *
 * Returns ERR_STORE when there is no store, or when something is in `to`, or when it is within the store;
 * ERR_STORE_IN_USE when another process uses `to`; ERR_STORE_CORRUPT; ERR_STORE_FULL. Each has the path and the remedy.
 * After an error, what this call made is gone; a directory stays that another process has begun to use.
 */
err_t store_backup_copy(const char *path, const char *to);

/* What was found in a store. */
struct store_contents {
  uint64_t n_items;
  uint64_t n_aside;
  size_t n_partitions; /* with a position */
  bool has_seen;
  uint64_t n_seen_items;
  size_t n_model_files; /* that came through a topic */
};

/* Read every record of a store that no process has open, and verify its checksum, and that the tables agree. The store
 * may be one that cannot be written, as on a read-only mount.
 *
 * Returns ERR_STORE_CORRUPT with the first damaged record; ERR_STORE_IN_USE; ERR_STORE. */
err_t store_backup_verify(const char *path, struct store_contents *out);

#endif
