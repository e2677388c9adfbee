/* SPDX-License-Identifier: Apache-2.0 */
/* One user's log within a transaction: the items that the user has seen, in the order in which they were recorded.
 *
 * The rows of a user are consecutive: (length of the user, user, number of the chunk) -> chunk. A record rewrites the
 * newest chunk or adds one, so its cost does not depend on the length of the log. An item that is seen again moves to
 * the end, if it is in the newest chunk; else the log has it twice. When the log may have an eighth more items than it
 * has to keep, it is compacted: each item stays once, and the newest are kept.
 *
 * Only the newest chunk changes, so whoever has read a log can go on there. A log that was compacted or forgotten has
 * another chunk there, or none: the number of a chunk rises with each transaction, and is never given to a user twice
 * while the store is open.
 */
#ifndef STORE_SEEN_LOG_H
#define STORE_SEEN_LOG_H

#include "base/region.h"
#include "base/seen_change.h"
#include "store/lmdb/env.h"
#include "store/seen/seen_chunk.h"
#include "store/seen/seen_keys.h"

/* What all logs have together. */
struct seen_counts {
  uint64_t n_users;
  uint64_t n_items; /* an item that a log has twice counts twice */
};

struct seen_log {
  struct env *env;
  MDB_txn *txn;
  MDB_dbi table;
  struct region *scratch;
  struct seen_counts *counts; /* changed with the log; NULL if it is only read */
  int64_t now_unix_ms;
  int64_t expired_before_unix_ms; /* older items count as not seen */
  uint64_t max_items;
};

/* The key of a row. */
enum { SEEN_KEY_MAX = 1 + SEEN_USER_MAX + 8 };
struct seen_key {
  uint8_t bytes[SEEN_KEY_MAX];
  size_t n;
};

/* Return the part of a row's key that all rows of its user share. Returns an empty span if it is no such key. */
struct span seen_key_user(struct span key);

/* Add items to the end of a user's log. A time in the future counts as now. */
err_t seen_log_append(struct seen_log *log, const struct seen_change *change);

/* Delete a user's log. */
err_t seen_log_delete(struct seen_log *log, struct span user);

/* Read the keys that a user's log has from a chunk on, or all of them. They live in log->scratch.
 *
 * first_chunk  SEEN_WHOLE_LOG, or the newest chunk of an earlier read
 *
 * Returns ERR_STORE_CORRUPT; ERR_MEMORY. */
err_t seen_log_read(struct seen_log *log, struct span user, uint64_t first_chunk, struct seen_keys *out);

#endif
