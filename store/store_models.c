/* SPDX-License-Identifier: Apache-2.0 */
/* Rows `model/KEY` and `model_position` of table `meta`. */
#include "store/store_models.h"

#include <assert.h>
#include <stdio.h>

#include "store/lmdb/seal.h"
#include "store/store_private.h"

static const char prefix[] = "model/";
static const char position_name[] = "model_position";

enum { PREFIX_BYTES = sizeof prefix - 1, NAME_BYTES = PREFIX_BYTES + SPACE_NAME_MAX + 1 };

/* The stored form of the position. */
struct row {
  int64_t partition;
  int64_t next;
  int64_t last_offset;
  uint64_t last_digest;
  int64_t last_timestamp_ms;
  int64_t complete_unix_ms;
};

static_assert(sizeof(struct row) == 48 && (int)STORE_MODEL_VALUE_MAX == (int)META_VALUE_MAX, "the stored forms fit");

/* ---- Writing ---- */

struct put {
  struct store *store;
  const struct store_model_record *records; /* [n] */
  size_t n;
  const struct store_position *position;
};

static err_t put_record(struct store *s, MDB_txn *txn, const struct store_model_record *record)
{
  char name[NAME_BYTES];

  if (record->key.n > SPACE_NAME_MAX)
    FAIL(ERR_ITEM, "the key of a control record has %zu bytes, at most %d can be stored", record->key.n,
         SPACE_NAME_MAX);
  snprintf(name, sizeof name, "%s%.*s", prefix, (int)record->key.n, (const char *)record->key.p);
  if (record->has_value)
    return meta_put_bytes(s->env, txn, s->meta_table, name, record->value);
  return meta_put_text(s->env, txn, s->meta_table, name, NULL);
}

static err_t put_position(struct store *s, MDB_txn *txn, const struct store_position *position)
{
  struct row row = {
    .partition = position->at.partition,
    .next = position->at.next,
    .last_offset = position->last_offset,
    .last_digest = position->last_digest,
    .last_timestamp_ms = position->last_timestamp_ms,
    .complete_unix_ms = position->complete_unix_ms,
  };

  return meta_put_bytes(s->env, txn, s->meta_table, position_name, span_of(&row, sizeof row));
}

static err_code_t put(void *context, MDB_txn *txn)
{
  struct put *p = context;

  for (size_t i = 0; i < p->n; i++)
    TRY(put_record(p->store, txn, &p->records[i]));
  return put_position(p->store, txn, p->position);
}

err_t store_models_put(struct store *s, const struct store_model_record *records, size_t n,
                       const struct store_position *position)
{
  struct put p = { s, records, n, position };

  return store_write(s, put, &p, &s->meta);
}

/* ---- Reading ---- */

struct get {
  struct store *store;
  struct region *region;
  struct store_model_record *records; /* [n] */
  size_t n;
  bool has_position;
  struct store_position position;
};

static err_t get_position(struct get *g, MDB_txn *txn)
{
  struct store *s = g->store;
  struct span bytes;
  struct row row;

  TRY(meta_get_bytes(s->env, txn, s->meta_table, position_name, &g->has_position, &bytes));
  if (!g->has_position)
    return ERR_OK;
  if (bytes.n != sizeof row)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `%s` in table `meta`: " ENV_REMEDY, s->env->path, position_name);
  memcpy(&row, bytes.p, sizeof row);
  g->position = (struct store_position){
    .at = { (int32_t)row.partition, row.next },
    .last_offset = row.last_offset,
    .last_digest = row.last_digest,
    .last_timestamp_ms = row.last_timestamp_ms,
    .complete_unix_ms = row.complete_unix_ms,
  };
  return ERR_OK;
}

static err_t take(struct get *g, struct span key, struct span sealed)
{
  struct store_model_record *record = &g->records[g->n];

  if (!seal_is_whole(sealed))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `%.*s` in table `meta`: " ENV_REMEDY, g->store->env->path, (int)key.n,
         (const char *)key.p);
  TRY(region_copy(g->region, span_of(key.p + PREFIX_BYTES, key.n - PREFIX_BYTES), &record->key));
  TRY(region_copy(g->region, span_of(sealed.p + SEAL_BYTES, sealed.n - SEAL_BYTES), &record->value));
  record->has_value = true;
  g->n++;
  return ERR_OK;
}

static bool is_record(MDB_val key)
{
  return key.mv_size >= PREFIX_BYTES && memcmp(key.mv_data, prefix, PREFIX_BYTES) == 0;
}

static err_code_t get(void *context, MDB_txn *txn)
{
  struct get *g = context;
  struct store *s = g->store;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key = env_value(span_of(prefix, PREFIX_BYTES)), data;
  uint64_t n_rows;

  TRY(get_position(g, txn));
  TRY(tables_count(s->env, txn, s->meta_table, &n_rows));
  TRY(region_array(g->region, n_rows, sizeof *g->records, &g->records));
  TRY(env_verify(s->env, mdb_cursor_open(txn, s->meta_table, &cursor), "read table `meta`"));
  int rc = mdb_cursor_get(cursor, &key, &data, MDB_SET_RANGE);
  for (; rc == MDB_SUCCESS && is_record(key); rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT))
    TRY(take(g, env_span(key), env_span(data)));
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(s->env, rc, "read table `meta`");
}

err_t store_models_get(struct store *s, struct region *region, struct store_model_record **records, size_t *n,
                       bool *has_position, struct store_position *position)
{
  struct get g = { .store = s, .region = region };

  TRY(store_read(s, get, &g));
  *records = g.records;
  *n = g.n;
  *has_position = g.has_position;
  *position = g.position;
  return ERR_OK;
}
