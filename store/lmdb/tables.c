/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, counting and emptying the tables of a store. */
#include "store/lmdb/tables.h"

#include <stdio.h>

err_t tables_count(struct env *env, MDB_txn *txn, MDB_dbi table, uint64_t *out)
{
  MDB_stat stat;

  TRY(env_verify(env, mdb_stat(txn, table, &stat), "count rows"));
  *out = stat.ms_entries;
  return ERR_OK;
}

static err_t open_table(struct env *env, MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *out)
{
  int rc = mdb_dbi_open(txn, name, flags, out);

  if (rc == MDB_NOTFOUND)
    FAIL(ERR_STORE_CORRUPT, "store %s is not a whole store: its LMDB environment has no table `%s`: " ENV_REMEDY,
         env->path, name);
  return env_verify(env, rc, "open a table");
}

err_t tables_open_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta, bool *is_new)
{
  MDB_dbi names;
  uint64_t n_names;

  TRY(env_verify(env, mdb_dbi_open(txn, NULL, 0, &names), "open the list of tables"));
  TRY(tables_count(env, txn, names, &n_names));
  *is_new = n_names == 0;
  return *is_new ? ERR_OK : open_table(env, txn, "meta", 0, meta);
}

err_t tables_create_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta)
{
  return open_table(env, txn, "meta", MDB_CREATE, meta);
}

/* Tables of side 0 have no number in their names. */
static err_t open_of_side(struct env *env, MDB_txn *txn, const char *stem, size_t side, bool creates, MDB_dbi *out)
{
  char name[32];

  if (side == 0)
    snprintf(name, sizeof name, "%s", stem);
  else
    snprintf(name, sizeof name, "%s.%zu", stem, side);
  return open_table(env, txn, name, creates ? MDB_CREATE : 0, out);
}

err_t tables_open_side(struct env *env, MDB_txn *txn, size_t side, bool creates, struct tables *out)
{
  TRY(open_of_side(env, txn, "items", side, creates, &out->items));
  TRY(open_of_side(env, txn, "keys", side, creates, &out->keys));
  TRY(open_of_side(env, txn, "aside", side, creates, &out->aside));
  return open_of_side(env, txn, "positions", side, creates, &out->positions);
}

enum { TABLES = 4 };

static void list(const struct tables *tables, MDB_dbi out[TABLES])
{
  out[0] = tables->items;
  out[1] = tables->keys;
  out[2] = tables->aside;
  out[3] = tables->positions;
}

err_t tables_count_side(struct env *env, MDB_txn *txn, const struct tables *tables, uint64_t *out)
{
  MDB_dbi all[TABLES];
  uint64_t sum = 0;

  list(tables, all);
  for (size_t i = 0; i < TABLES; i++) {
    uint64_t n;
    TRY(tables_count(env, txn, all[i], &n));
    sum += n;
  }
  *out = sum;
  return ERR_OK;
}

err_t tables_clear_side(struct env *env, MDB_txn *txn, const struct tables *tables)
{
  MDB_dbi all[TABLES];

  list(tables, all);
  for (size_t i = 0; i < TABLES; i++)
    TRY(env_verify(env, mdb_drop(txn, all[i], 0), "clear a table"));
  return ERR_OK;
}

static err_t trim(struct env *env, MDB_txn *txn, MDB_dbi table, size_t *budget)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key;
  MDB_val data;
  int rc = MDB_SUCCESS;

  TRY(env_verify(env, mdb_cursor_open(txn, table, &cursor), "free rows"));
  while (*budget > 0 && (rc = mdb_cursor_get(cursor, &key, &data, MDB_LAST)) == MDB_SUCCESS) {
    TRY(env_verify(env, mdb_cursor_del(cursor, 0), "free a row"));
    --*budget;
  }
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(env, rc, "free rows");
}

err_t tables_trim_side(struct env *env, MDB_txn *txn, const struct tables *tables, size_t *budget)
{
  MDB_dbi all[TABLES];

  list(tables, all);
  for (size_t i = 0; *budget > 0 && i < TABLES; i++)
    TRY(trim(env, txn, all[i], budget));
  return ERR_OK;
}
