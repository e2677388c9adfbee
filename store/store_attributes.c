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

static err_t decode(const struct store *s, struct span bytes, struct attribute_ids *out)
{
  err_code_t err = attribute_ids_decode(bytes, out);

  if (err == ERR_STORE_CORRUPT)
    FAIL(err, "store %s is damaged: %s: " ENV_REMEDY, s->env->path, err_message());
  return err;
}

static err_t encode(struct store *s, const struct attribute_ids *ids, struct span *out)
{
  region_reset(&s->scratch);
  return attribute_ids_encode(ids, &s->scratch, out);
}

/* Give the configured attributes their ids, and compare the list with the stored one. */
static err_code_t assign(void *context, MDB_txn *txn)
{
  struct setting *setting = context;
  struct store *s = setting->store;
  AUTO(attribute_ids_fini) struct attribute_ids stored = { 0 };
  struct span was, is;
  bool is_found;

  TRY(meta_get_bytes(s->env, txn, s->meta_table, list_name, &is_found, &was));
  if (is_found)
    TRY(decode(s, was, &stored));
  TRY(attribute_ids_assign(&stored, setting->configured, &setting->ids));
  TRY(encode(s, &setting->ids, &is));
  setting->differs = is_found ? !span_equal(was, is) : setting->ids.attributes.n > 0;
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
