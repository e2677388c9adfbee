#include "store/meta.h"

#include "base/mem.h"
#include "store/seal.h"

enum { TEXT_BYTES_MAX = 1024 };

static err_t put_value(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, struct span payload)
{
  uint8_t value[SEAL_BYTES + TEXT_BYTES_MAX];
  MDB_val key = env_value(span_of_str(name));

  if (payload.n > TEXT_BYTES_MAX)
    FAIL(ERR_STORE, "the %s has %zu bytes, at most %d can be stored", name, payload.n, TEXT_BYTES_MAX);
  memcpy(value + SEAL_BYTES, payload.p, payload.n);
  seal_put(value, SEAL_BYTES + payload.n);
  MDB_val data = env_value(span_of(value, SEAL_BYTES + payload.n));
  return env_verify(env, mdb_put(txn, table, &key, &data, 0), "write to table `meta`");
}

/* `*out` points into the transaction. */
static err_t get_value(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, bool *is_found, struct span *out)
{
  MDB_val key = env_value(span_of_str(name));
  MDB_val data;
  int rc = mdb_get(txn, table, &key, &data);

  *is_found = rc != MDB_NOTFOUND;
  if (!*is_found)
    return ERR_OK;
  TRY(env_verify(env, rc, "read table `meta`"));
  if (!seal_check(env_span(data)))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `%s` in table `meta`: " ENV_REMEDY, env->path, name);
  *out = span_of((const uint8_t *)data.mv_data + SEAL_BYTES, data.mv_size - SEAL_BYTES);
  return ERR_OK;
}

static err_t put_number(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t number)
{
  return put_value(env, txn, table, name, span_of(&number, sizeof number));
}

static err_t get_number(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t *out)
{
  bool is_found;
  struct span value;

  TRY(get_value(env, txn, table, name, &is_found, &value));
  if (!is_found || value.n != sizeof *out)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: no `%s` in table `meta`: " ENV_REMEDY, env->path, name);
  memcpy(out, value.p, sizeof *out);
  return ERR_OK;
}

err_t meta_create(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out)
{
  *out = (struct meta){ .generation = 1 };
  TRY(put_number(env, txn, table, "schema", META_SCHEMA));
  TRY(put_number(env, txn, table, "generation", out->generation));
  TRY(put_number(env, txn, table, "rebuilding", out->is_rebuilding));
  return put_number(env, txn, table, "items", out->n_items);
}

err_t meta_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out)
{
  uint64_t schema;
  uint64_t is_rebuilding;

  TRY(get_number(env, txn, table, "schema", &schema));
  if (schema != META_SCHEMA)
    FAIL(ERR_STORE_CORRUPT,
         "store %s has schema %llu, this version reads %d: run the version that wrote it, or " ENV_REMEDY, env->path,
         (unsigned long long)schema, META_SCHEMA);
  TRY(get_number(env, txn, table, "generation", &out->generation));
  TRY(get_number(env, txn, table, "rebuilding", &is_rebuilding));
  TRY(get_number(env, txn, table, "items", &out->n_items));
  out->is_rebuilding = is_rebuilding != 0;
  return ERR_OK;
}

err_t meta_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct meta *old, const struct meta *new)
{
  if (new->generation != old->generation)
    TRY(put_number(env, txn, table, "generation", new->generation));
  if (new->is_rebuilding != old->is_rebuilding)
    TRY(put_number(env, txn, table, "rebuilding", new->is_rebuilding));
  if (new->n_items != old->n_items)
    TRY(put_number(env, txn, table, "items", new->n_items));
  return ERR_OK;
}

err_t meta_get_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, char **out)
{
  bool is_found;
  struct span value;

  TRY(get_value(env, txn, table, name, &is_found, &value));
  if (is_found)
    return mem_copy(value, out);
  *out = NULL;
  return ERR_OK;
}

err_t meta_put_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, const char *text)
{
  MDB_val key = env_value(span_of_str(name));

  if (text)
    return put_value(env, txn, table, name, span_of_str(text));
  int rc = mdb_del(txn, table, &key, NULL);
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(env, rc, "write to table `meta`");
}
