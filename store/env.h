/* SPDX-License-Identifier: Apache-2.0 */
/* The LMDB environment of a store: its directory, lock, memory map and transactions.
 *
 * data.mdb is kept as long as the map, as a sparse file (`du` tells what it really takes). LMDB may leave the last
 * pages of a file unwritten, and reading past the end of a mapped file kills the process; so a file that is
 * shorter than its newest transaction says has been cut, and is refused.
 *
 * Thread: the one that opened it.
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H

#include "base/err.h"
#include "base/span.h"
#include "store/directory_lock.h"

#include <lmdb.h>

struct env {
  char *path;
  struct directory_lock lock;
  MDB_env *mdb; /* NULL: see env_is_lost() */
  size_t page_bytes;
  size_t map_bytes;
  size_t used_bytes; /* of the map, by the newest transaction */
  size_t txn_id;     /* of that */
  bool is_full;      /* the running transaction met the end of the map */
  unsigned n_grown;  /* times that the map was doubled */
  unsigned n_redone; /* times that a transaction had to be redone for it */
};

/* Open or create the environment in a directory, which is created where it is missing.
 *
 * map_bytes  size of a new map; a multiple of the page size. An old map keeps its size where that is larger
 *
 * Returns as store_open() does.
 */
err_t env_open(const char *path, size_t map_bytes, struct env **out);
void env_close(struct env **env);

/* Has LMDB met a failure that its environment does not survive, such as a header page that could not be written? Then
 * all calls fail until env_reopen(), after which tables have to be opened anew. */
bool env_is_lost(const struct env *env);

/* Returns ERR_STORE when the directory has another newest transaction than memory: it may be the one that failed. */
err_t env_reopen(struct env *env);

/* Give the environment up: env_is_lost() from then on. */
void env_lose(struct env *env);

/* Run `body` in a write transaction and commit it. The map is doubled first when 80 % of it are used; when the
 * transaction still meets its end, it is aborted, the map is doubled and `body` runs again from its start: so
 * `body` keeps its results in its context until env_write() returns, and begins by resetting them.
 *
 * Returns ERR_OK when it is committed; otherwise nothing has changed, and the error is body's or LMDB's: ERR_STORE_FULL
 * when the disk had no room, and the same may be tried again.
 */
typedef err_code_t (*env_body)(void *context, MDB_txn *txn);
err_t env_write(struct env *env, env_body body, void *context);

/* Run `body` in a read transaction, which ends with it. Tables that it opened stay open if it succeeds. */
err_t env_read(struct env *env, env_body body, void *context);

/* Turn LMDB's result into ours: ERR_STORE_CORRUPT and ERR_STORE_FULL where it says so, else ERR_STORE, with the path
 * and the remedy.
 *
 * what  what could not be done: "write an item"
 */
#define env_verify(env, rc, what) env_verify_at((env), (rc), (what), __FILE__, __LINE__)
err_t env_verify_at(struct env *env, int rc, const char *what, const char *file, int line);

/* For AUTO(env_close_cursor): a cursor of a read transaction is closed before its transaction ends. */
void env_close_cursor(MDB_cursor **cursor);

/* What to do about a damaged store, for messages. */
#define ENV_REMEDY "move the directory away: the daemon then builds a new store from the log"

static inline MDB_val env_value(struct span bytes)
{
  return (MDB_val){ .mv_size = bytes.n, .mv_data = (void *)(uintptr_t)bytes.p };
}

static inline struct span env_span(MDB_val value)
{
  return span_of(value.mv_data, value.mv_size);
}

#endif
