/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the sealed values of table `meta`. */
#include "store/lmdb/meta.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/lmdb/seal.h"

#include <assert.h>

static_assert(sizeof(struct meta) == (4 + 2 * TABLES_SIDES) * sizeof(uint64_t), "the stored form has no padding");

err_t meta_put_bytes(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, struct span bytes)
{
  uint8_t value[SEAL_BYTES + META_VALUE_MAX];
  MDB_val key = env_value(span_of_str(name));

  if (bytes.n > META_VALUE_MAX)
    FAIL(ERR_STORE, "the %s has %zu bytes, at most %d can be stored", name, bytes.n, META_VALUE_MAX);
  if (bytes.n > 0) /* an empty value may have no address */
    memcpy(value + SEAL_BYTES, bytes.p, bytes.n);
  seal_put(value, SEAL_BYTES + bytes.n);
  MDB_val data = env_value(span_of(value, SEAL_BYTES + bytes.n));
  return env_verify(env, mdb_put(txn, table, &key, &data, 0), "write to table `meta`");
}

err_t meta_get_bytes(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, bool *is_found, struct span *out)
{
  MDB_val key = env_value(span_of_str(name));
  MDB_val data;
  int rc = mdb_get(txn, table, &key, &data);

  *is_found = rc != MDB_NOTFOUND;
  if (!*is_found)
    return ERR_OK;
  TRY(env_verify(env, rc, "read table `meta`"));
  if (!seal_is_whole(env_span(data)))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `%s` in table `meta`: " ENV_REMEDY, env->path, name);
  *out = span_of((const uint8_t *)data.mv_data + SEAL_BYTES, data.mv_size - SEAL_BYTES);
  return ERR_OK;
}

err_t meta_check(struct env *env, MDB_txn *txn, MDB_dbi table)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key, data;
  int rc;

  TRY(env_verify(env, mdb_cursor_open(txn, table, &cursor), "read table `meta`"));
  while ((rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) == MDB_SUCCESS) {
    if (!seal_is_whole(env_span(data)))
      FAIL(ERR_STORE_CORRUPT, "store %s is damaged: %s in table `meta`: " ENV_REMEDY, env->path,
           log_quote(env_span(key)));
  }
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(env, rc, "read table `meta`");
}

static err_t get_number(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t *out)
{
  bool is_found;
  struct span value;

  TRY(meta_get_bytes(env, txn, table, name, &is_found, &value));
  if (!is_found || value.n != sizeof *out)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: no `%s` in table `meta`: " ENV_REMEDY, env->path, name);
  memcpy(out, value.p, sizeof *out);
  return ERR_OK;
}

err_t meta_put_schema(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t schema)
{
  return meta_put_bytes(env, txn, table, name, span_of(&schema, sizeof schema));
}

err_t meta_verify_schema(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t schema)
{
  uint64_t found = 0; /* gcc does not see that it is set */

  TRY(get_number(env, txn, table, name, &found));
  if (found != schema)
    FAIL(ERR_STORE_CORRUPT,
         "store %s has schema %llu, this version reads %llu: run the version that wrote it, or " ENV_REMEDY, env->path,
         (unsigned long long)found, (unsigned long long)schema);
  return ERR_OK;
}

err_t meta_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out)
{
  bool is_found;
  struct span value;

  TRY(meta_get_bytes(env, txn, table, "state", &is_found, &value));
  if (!is_found || value.n != sizeof *out)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: no `state` in table `meta`: " ENV_REMEDY, env->path);
  memcpy(out, value.p, sizeof *out);
  if (out->live >= TABLES_SIDES || out->rebuilt == out->live ||
      (out->rebuilt >= TABLES_SIDES && out->rebuilt != META_NO_SIDE))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the sides in table `meta`: " ENV_REMEDY, env->path);
  return ERR_OK;
}

err_t meta_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct meta *meta)
{
  return meta_put_bytes(env, txn, table, "state", span_of(meta, sizeof *meta));
}

err_t meta_get_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, char **out)
{
  bool is_found;
  struct span value;

  TRY(meta_get_bytes(env, txn, table, name, &is_found, &value));
  if (is_found)
    return mem_copy(value, out);
  *out = NULL;
  return ERR_OK;
}

err_t meta_put_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, const char *text)
{
  MDB_val key = env_value(span_of_str(name));

  if (text)
    return meta_put_bytes(env, txn, table, name, span_of_str(text));
  int rc = mdb_del(txn, table, &key, NULL);
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(env, rc, "write to table `meta`");
}
