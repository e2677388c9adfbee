#include "store/tables.h"

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
    FAIL(ERR_STORE_CORRUPT, "%s holds an LMDB environment without the table `%s`, so not a whole store: " ENV_REMEDY,
         env->path, name);
  return env_verify(env, rc, "open a table");
}

err_t tables_open_meta(struct env *env, MDB_txn *txn, struct tables *out, bool *is_new)
{
  MDB_dbi names;
  uint64_t n_names;

  TRY(env_verify(env, mdb_dbi_open(txn, NULL, 0, &names), "open the list of tables"));
  TRY(tables_count(env, txn, names, &n_names));
  TRY(open_table(env, txn, "meta", n_names == 0 ? MDB_CREATE : 0, &out->meta));
  *is_new = n_names == 0;
  return ERR_OK;
}

err_t tables_open_rest(struct env *env, MDB_txn *txn, bool is_new, struct tables *out)
{
  unsigned flags = is_new ? MDB_CREATE : 0;

  TRY(open_table(env, txn, "items", flags, &out->items));
  TRY(open_table(env, txn, "keys", flags, &out->keys));
  return open_table(env, txn, "positions", flags, &out->positions);
}
