/* SPDX-License-Identifier: Apache-2.0 */
/* The LMDB environment of a store: its directory, lock, memory map and transactions.
 *
 * data.mdb is a sparse file that is kept as long as the map (`du` shows what it takes on the disk). LMDB may leave the
 * last pages of a file unwritten, and reading past the end of a mapped file kills the process. So a file that is
 * shorter than its newest transaction needs has been cut, and is refused.
 *
 * Thread: one at a time makes all calls, whichever it is; env_read() from any, beside it.
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H

#include "base/err.h"
#include "base/span.h"
#include "store/lmdb/directory_lock.h"

#include <lmdb.h>
#include <pthread.h>

enum { ENV_DAMAGED_STATUS = 4 }; /* that of the daemon for a damaged store */

struct env {
  char *path;
  struct directory_lock lock;
  pthread_rwlock_t map_lock; /* env_read() holds it shared. It is held alone while the map changes or is lost */
  MDB_env *mdb;              /* NULL: lost, see env_ensure_open() */
  size_t page_bytes;
  size_t map_bytes;
  size_t used_bytes; /* used part of the map, as of the newest transaction */
  size_t txn_id;     /* id of the newest transaction */
  bool is_to_read;   /* nothing is written, see env_open_to_read() */
  bool is_full;      /* the running transaction has filled the map */
  bool is_cramped;   /* the map could not be grown early, which was logged */
};

/* Open the environment in a directory, or create it. The directory is created if it is missing.
 *
 * map_bytes  size of a new map, a multiple of the page size. A larger existing map keeps its size
 *
 * If LMDB finds damage later that it cannot return as an error, the process ends, with ENV_DAMAGED_STATUS and an event.
 * Returns the same errors as store_open().
 */
err_t env_open(const char *path, size_t map_bytes, struct env **out);
void env_close(struct env **env);

/* Open an existing environment to read it. Nothing is written into data.mdb, and no file of LMDB is needed beside it,
 * so it may be on a read-only mount. The lock on the directory keeps other processes from opening it meanwhile. Do not
 * call env_write(). Returns the same errors. */
err_t env_open_to_read(const char *path, struct env **out);

/* Check the pages before anything is read: pages_check(). */
err_t env_check_pages(struct env *env, bool reads_values);

/* Run `body` in a write transaction and commit it. If 80 % of the map are used, it is doubled first; if it
 * cannot be, what is left of it is used. If the transaction fills it, the transaction is aborted, the map is doubled
 * and `body` runs again. So `body` must begin by resetting its results, and keep them in its context until env_write()
 * returns.
 *
 * Returns ERR_OK when the transaction is committed. Otherwise nothing has changed, and the error is body's or LMDB's:
 * ERR_STORE_FULL when the disk is full; the caller may repeat the call later.
 */
typedef err_code_t (*env_body)(void *context, MDB_txn *txn);
err_t env_write(struct env *env, env_body body, void *context);

/* Run `body` in a read transaction, and end the transaction. Tables that `body` opened stay open if it succeeds. Tables
 * may be opened only while no other thread has a transaction. `body` must not call env_read(). Up to 510 threads may
 * read at a time. Thread: any. Blocks: while the map grows. */
err_t env_read(struct env *env, env_body body, void *context);

/* Reopen the environment if it is lost. It is after a failure that LMDB does not survive, such as a header page that
 * could not be written. All other calls then fail.
 *
 * open_tables  runs in a read transaction, and opens the tables again. No other thread reads before it has succeeded
 *
 * Returns ERR_STORE when the newest transaction on the disk is not the one that memory knows: it may be the failed one;
 * the errors of env_open() and of open_tables. After an error it stays lost. Thread: the one that writes. */
err_t env_ensure_open(struct env *env, env_body open_tables, void *context);

/* Convert an LMDB result to our error, with the path and the remedy: ERR_OK for success, ERR_STORE_CORRUPT for damage,
 * ERR_STORE_FULL for a full disk, else ERR_STORE.
 *
 * what  the failed action, such as "write an item"
 */
#define env_verify(env, rc, what) env_verify_at((env), (rc), (what), __FILE__, __LINE__)
err_t env_verify_at(struct env *env, int rc, const char *what, const char *file, int line);

/* Close a cursor, for AUTO(env_close_cursor). A cursor of a read transaction must be closed before the transaction
 * ends. */
void env_close_cursor(MDB_cursor **cursor);

/* The remedy for a damaged store, for error messages. */
#define ENV_REMEDY "move the directory away: the daemon then builds a new store from the log"

/* Convert between LMDB's bytes and ours. Nothing is copied. */
static inline MDB_val env_value(struct span bytes)
{
  return (MDB_val){ .mv_size = bytes.n, .mv_data = (void *)(uintptr_t)bytes.p };
}

static inline struct span env_span(MDB_val value)
{
  return span_of(value.mv_data, value.mv_size);
}

#endif
