/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of the configuration get ids, which table `meta` keeps. */
#include "store/store_private.h"

static const char list_name[] = "attributes";

struct setting {
  struct store *store;
  const struct attributes *configured;
  struct attribute_ids ids; /* of the configured attributes */
  bool differs;             /* from the stored ones */
};

static err_t load(struct store *s, MDB_txn *txn, struct attribute_ids *out)
{
  struct span bytes;
  bool is_found;

  *out = (struct attribute_ids){ 0 };
  TRY(meta_get_bytes(s->env, txn, s->meta_table, list_name, &is_found, &bytes));
  if (!is_found)
    return ERR_OK;
  err_code_t err = attribute_ids_decode(bytes, out);
  if (err == ERR_STORE_CORRUPT)
    FAIL(err, "store %s is damaged: %s: " ENV_REMEDY, s->env->path, err_message());
  return err;
}

static err_code_t assign(void *context, MDB_txn *txn)
{
  struct setting *setting = context;
  AUTO(attribute_ids_fini) struct attribute_ids stored = { 0 };

  attribute_ids_fini(&setting->ids); /* of an attempt that failed */
  TRY(load(setting->store, txn, &stored));
  return attribute_ids_assign(&stored, setting->configured, &setting->ids);
}

static err_t encode(struct store *s, const struct attribute_ids *ids, struct span *out)
{
  region_reset(&s->scratch);
  return attribute_ids_encode(ids, &s->scratch, out);
}

static err_code_t compare(void *context, MDB_txn *txn)
{
  struct setting *setting = context;
  struct store *s = setting->store;
  struct span stored, assigned;
  bool is_found;

  TRY(meta_get_bytes(s->env, txn, s->meta_table, list_name, &is_found, &stored));
  TRY(encode(s, &setting->ids, &assigned));
  setting->differs = is_found ? !span_equal(stored, assigned) : setting->ids.attributes.n > 0;
  return ERR_OK;
}

static err_code_t put(void *context, MDB_txn *txn)
{
  struct setting *setting = context;
  struct store *s = setting->store;
  struct span bytes;

  TRY(encode(s, &setting->ids, &bytes));
  return meta_put_bytes(s->env, txn, s->meta_table, list_name, bytes);
}

static err_t set(struct setting *setting)
{
  struct store *s = setting->store;

  TRY(store_read(s, assign, setting));
  TRY(store_read(s, compare, setting));
  if (setting->differs)
    TRY(store_write(s, put, setting, &s->meta));
  attribute_ids_fini(&s->attribute_ids);
  s->attribute_ids = setting->ids;
  setting->ids = (struct attribute_ids){ 0 };
  return ERR_OK;
}

err_t store_set_attributes(struct store *s, const struct attributes *attributes)
{
  struct setting setting = { .store = s, .configured = attributes };

  err_code_t err = set(&setting);
  attribute_ids_fini(&setting.ids);
  return err;
}
