/* SPDX-License-Identifier: Apache-2.0 */
/* The list of positions, and the stored form of its rows. */
#include "store/lmdb/positions.h"

#include "base/mem.h"
#include "store/lmdb/seal.h"

#include <assert.h>
#include <endian.h>

/* A row of the table. */
struct row {
  uint64_t seal;
  int64_t next;
  int64_t last_offset;
  uint64_t last_digest;
  int64_t last_timestamp_ms;
  int64_t partition;
  int64_t complete_unix_ms;
};

static_assert(sizeof(struct row) == 56 && sizeof(uint64_t) == SEAL_BYTES, "a row has no padding");

void positions_fini(struct positions *p)
{
  mem_free(&p->rows);
  *p = (struct positions){ 0 };
}

void positions_clear(struct positions *p)
{
  p->n = 0;
}

err_t positions_copy(const struct positions *from, struct positions *to)
{
  TRY(mem_grow(from->n, sizeof *to->rows, &to->capacity, &to->rows));
  if (from->n)
    memcpy(to->rows, from->rows, from->n * sizeof *to->rows);
  to->n = from->n;
  return ERR_OK;
}

/* Return the index of the first row whose partition is not below this one. */
static size_t lower_bound(const struct positions *p, int32_t partition)
{
  size_t i = 0;

  while (i < p->n && p->rows[i].at.partition < partition)
    i++;
  return i;
}

const struct store_position *positions_find(const struct positions *p, int32_t partition)
{
  size_t i = lower_bound(p, partition);

  return i < p->n && p->rows[i].at.partition == partition ? &p->rows[i] : NULL;
}

err_t positions_advance(struct positions *p, const struct store_position *position)
{
  size_t i = lower_bound(p, position->at.partition);

  if (i == p->n || p->rows[i].at.partition != position->at.partition) {
    TRY(mem_grow(p->n + 1, sizeof *p->rows, &p->capacity, &p->rows));
    memmove(p->rows + i + 1, p->rows + i, (p->n - i) * sizeof *p->rows);
    p->n++;
  } else if (position->at.next < p->rows[i].at.next) {
    return ERR_OK;
  }
  p->rows[i] = *position;
  return ERR_OK;
}

err_t positions_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct store_position *position)
{
  uint32_t name = htobe32((uint32_t)position->at.partition);
  struct row row = {
    .next = position->at.next,
    .last_offset = position->last_offset,
    .last_digest = position->last_digest,
    .last_timestamp_ms = position->last_timestamp_ms,
    .partition = position->at.partition,
    .complete_unix_ms = position->complete_unix_ms,
  };
  MDB_val key = { sizeof name, &name };
  MDB_val data = { sizeof row, &row };

  seal_put((uint8_t *)&row, sizeof row);
  return env_verify(env, mdb_put(txn, table, &key, &data, 0), "write a position");
}

static err_t decode_row(struct env *env, struct span key, struct span value, struct store_position *out)
{
  uint32_t name = 0;
  struct row row = { 0 };
  bool is_sized = key.n == sizeof name && value.n == sizeof row;

  if (key.n == sizeof name)
    memcpy(&name, key.p, sizeof name);
  if (is_sized)
    memcpy(&row, value.p, sizeof row);
  if (!is_sized || !seal_is_whole(value) || row.partition != (int32_t)be32toh(name))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the position of partition %d: " ENV_REMEDY, env->path,
         (int32_t)be32toh(name));
  *out = (struct store_position){
    .at = { (int32_t)row.partition, row.next },
    .last_offset = row.last_offset,
    .last_digest = row.last_digest,
    .last_timestamp_ms = row.last_timestamp_ms,
    .complete_unix_ms = row.complete_unix_ms,
  };
  return ERR_OK;
}

err_t positions_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct positions *out)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key;
  MDB_val data;
  int rc;

  positions_clear(out);
  TRY(env_verify(env, mdb_cursor_open(txn, table, &cursor), "read positions"));
  while ((rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) == MDB_SUCCESS) {
    struct store_position position;
    TRY(decode_row(env, env_span(key), env_span(data), &position));
    TRY(positions_advance(out, &position));
  }
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(env, rc, "read positions");
}
