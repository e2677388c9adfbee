/* SPDX-License-Identifier: Apache-2.0 */
/* The open seen store, and the functions that its files share. Only these files and their tests include it. */
#ifndef STORE_SEEN_PRIVATE_H
#define STORE_SEEN_PRIVATE_H

#include <stdatomic.h>

#include "store/lmdb/positions.h"
#include "store/seen/seen_log.h"
#include "store/seen/seen_store.h"

struct seen_store {
  struct env *env;
  MDB_dbi meta;
  MDB_dbi logs;
  MDB_dbi positions_table;
  struct seen_store_limits limits;
  int64_t (*clock_unix_ms)(void);
  struct positions positions; /* as the newest committed transaction left them */
  struct seen_counts counts;  /* the same */
  struct positions draft;     /* what the transaction being written makes of them */
  struct region scratch;      /* lives for one change */
  struct seen_key next_swept; /* where the sweep goes on; n = 0: at the first row */
  struct {
    _Atomic uint64_t n_users;
    _Atomic uint64_t n_items;
    _Atomic uint64_t used_bytes;
  } stats;
};

/* Open a store as seen_store_open() does, with a given size of a new map. Tests use small maps, which fill up soon.
 *
 * checks_pages  call env_check_pages() first */
err_t seen_store_open_sized(const char *path, const struct seen_store_limits *limits, size_t map_bytes,
                            bool checks_pages, struct seen_store **out);

/* Open an existing store that no process has open, as store_open_to_read() does. */
err_t seen_store_open_to_read(const char *path, struct seen_store **out);

/* Run `body` in a write transaction and commit it, as env_write() does. */
err_t seen_store_write(struct seen_store *s, env_body body, void *context);

/* Make the counts those of the committed transaction. */
void seen_store_publish(struct seen_store *s, const struct seen_counts *counts);

/* Write the counts, if they have changed. */
err_t seen_store_put_counts(struct seen_store *s, MDB_txn *txn, const struct seen_counts *counts);

/* Return the time before which items are expired. */
int64_t seen_store_expired_before(const struct seen_store *s, int64_t now_unix_ms);

#endif
