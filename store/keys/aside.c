/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of table `aside`: encode their keys, and verify that each record belongs to its row. */
#include "store/keys/aside.h"

#include "base/log.h"

#include <endian.h>

enum { SIZE_BYTES = 2, PARTITION_BYTES = 4 };

static struct span encode_row(struct span key, int32_t partition, uint8_t out[ASIDE_KEY_MAX])
{
  uint16_t size = htobe16((uint16_t)key.n);
  uint32_t number = htobe32((uint32_t)partition);

  memcpy(out, &size, SIZE_BYTES);
  memcpy(out + SIZE_BYTES, key.p, key.n);
  memcpy(out + SIZE_BYTES + key.n, &number, PARTITION_BYTES);
  return span_of(out, SIZE_BYTES + key.n + PARTITION_BYTES);
}

static bool is_row_of(struct span row, struct span key)
{
  uint16_t size;

  if (row.n != SIZE_BYTES + key.n + PARTITION_BYTES)
    return false;
  memcpy(&size, row.p, SIZE_BYTES);
  return be16toh(size) == key.n && memcmp(row.p + SIZE_BYTES, key.p, key.n) == 0;
}

err_t aside_check_empty(const struct aside *a, bool *is_empty)
{
  uint64_t n;

  TRY(tables_count(a->env, a->txn, a->table, &n));
  *is_empty = n == 0;
  return ERR_OK;
}

/* Read a row's record. It must have the key and partition of its row. */
static err_t read_state(const struct aside *a, struct span row, struct span record, struct aside_state *out)
{
  uint8_t want[ASIDE_KEY_MAX];
  err_code_t err = record_read_head(record, &out->head);

  out->record = record;
  if (err == ERR_OK && span_equal(encode_row(out->head.key, out->head.partition, want), row))
    return ERR_OK;
  bool has_key = row.n > SIZE_BYTES + PARTITION_BYTES;
  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a record kept aside of item %s: %s: " ENV_REMEDY, a->env->path,
       has_key ? log_quote(span_of(row.p + SIZE_BYTES, row.n - SIZE_BYTES - PARTITION_BYTES)) : "(unknown)",
       err == ERR_OK ? "it belongs to another key or partition" : err_message());
}

static err_t copy_state(const struct aside_state *state, struct region *region, struct aside_state *out)
{
  TRY(record_copy(state->record, false, region, &out->record));
  return record_read_head(out->record, &out->head);
}

/* Copy the states of a key to `states`, or only count them if `states` is NULL.
 *
 * first  the row key to begin at
 */
static err_t walk(const struct aside *a, struct span first, struct span key, struct region *region,
                  struct aside_state *states, size_t *n)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val row = env_value(first);
  MDB_val data;
  struct aside_state state;
  int rc;

  *n = 0;
  TRY(env_verify(a->env, mdb_cursor_open(a->txn, a->table, &cursor), "read what is kept aside"));
  for (rc = mdb_cursor_get(cursor, &row, &data, MDB_SET_RANGE); rc == MDB_SUCCESS && is_row_of(env_span(row), key);
       rc = mdb_cursor_get(cursor, &row, &data, MDB_NEXT)) {
    TRY(read_state(a, env_span(row), env_span(data), &state));
    if (state.head.log_number != a->log_number)
      continue;
    if (states)
      TRY(copy_state(&state, region, &states[*n]));
    ++*n;
  }
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(a->env, rc, "read what is kept aside");
}

err_t aside_get(const struct aside *a, struct span key, struct region *region, struct aside_state **states, size_t *n)
{
  uint8_t bytes[ASIDE_KEY_MAX];
  struct span first = encode_row(key, 0, bytes);

  *states = NULL;
  TRY(walk(a, first, key, region, NULL, n));
  if (*n == 0)
    return ERR_OK;
  TRY(region_array(region, *n, sizeof **states, states));
  return walk(a, first, key, region, *states, n);
}

err_t aside_put(const struct aside *a, struct span key, int32_t partition, struct span record)
{
  uint8_t bytes[ASIDE_KEY_MAX];
  MDB_val row = env_value(encode_row(key, partition, bytes));
  MDB_val data = env_value(record);

  return env_verify(a->env, mdb_put(a->txn, a->table, &row, &data, 0), "keep a record aside");
}

err_t aside_del(const struct aside *a, struct span key, int32_t partition)
{
  uint8_t bytes[ASIDE_KEY_MAX];
  MDB_val row = env_value(encode_row(key, partition, bytes));
  int rc = mdb_del(a->txn, a->table, &row, NULL);

  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(a->env, rc, "delete what is kept aside");
}

err_t aside_next(const struct aside *a, struct span from, uint8_t row[ASIDE_KEY_MAX], size_t *row_bytes,
                 struct aside_state *state, bool *is_found)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key = env_value(from);
  MDB_val data;

  TRY(env_verify(a->env, mdb_cursor_open(a->txn, a->table, &cursor), "read what is kept aside"));
  int rc = mdb_cursor_get(cursor, &key, &data, from.n ? MDB_SET_RANGE : MDB_FIRST);
  *is_found = rc != MDB_NOTFOUND;
  if (!*is_found)
    return ERR_OK;
  TRY(env_verify(a->env, rc, "read what is kept aside"));
  TRY(read_state(a, env_span(key), env_span(data), state));
  *row_bytes = key.mv_size;
  memcpy(row, key.mv_data, key.mv_size);
  return ERR_OK;
}
