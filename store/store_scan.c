/* SPDX-License-Identifier: Apache-2.0 */
/* Scanning the live catalogue: visit every item in slot order, and verify that the tables agree. */
#include "store/store_private.h"

#include <assert.h>
#include <xxhash.h>

struct scan {
  struct store *store;
  uint64_t next; /* the next slot to read */
  size_t n;      /* items of this chunk */
  struct item_change *changes;
  uint64_t items_sum; /* sum of digest(key, slot) over the records read so far */
  uint64_t keys_sum;  /* the same sum over the rows of table `keys` */
};

/* Sums of digests do not depend on the order, so each table is read in its own order. */
static uint64_t digest(struct span key, uint64_t slot)
{
  return XXH3_64bits_withSeed(key.p, key.n, slot);
}

/* Decode the record that the cursor found. It must be the record of slot `slot`. */
static err_t read_item(struct slots *slots, int rc, const MDB_val *key, const MDB_val *data, uint64_t slot,
                       struct region *region, struct item_change *out)
{
  err_code_t err = ERR_OK;

  if (rc != MDB_NOTFOUND)
    TRY(env_verify(slots->env, rc, "read items"));
  if (rc == MDB_NOTFOUND || key->mv_size != SLOTS_KEY_BYTES || slots_decode(key->mv_data) != slot)
    err = err_set(ERR_STORE_CORRUPT, __FILE__, __LINE__, "it is missing");
  else
    err = record_decode(env_span(*data), region, out);
  if (err == ERR_STORE_CORRUPT)
    return slots_fail_damaged(slots, slot);
  return err;
}

static err_code_t read_chunk(void *context, MDB_txn *txn)
{
  struct scan *scan = context;
  struct store *s = scan->store;
  struct slots slots = store_slots(s, txn, s->meta.live);
  uint8_t first[SLOTS_KEY_BYTES];
  MDB_val key = { sizeof first, first };
  MDB_val data;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;

  slots_encode(scan->next, first);
  TRY(env_verify(s->env, mdb_cursor_open(txn, slots.tables->items, &cursor), "read items"));
  for (size_t i = 0; i < scan->n; i++) {
    int rc = mdb_cursor_get(cursor, &key, &data, i == 0 ? MDB_SET_RANGE : MDB_NEXT);
    TRY(read_item(&slots, rc, &key, &data, scan->next, &s->chunk, &scan->changes[i]));
    scan->items_sum += digest(scan->changes[i].key, scan->next);
    scan->next++;
  }
  return ERR_OK;
}

static err_code_t read_keys(void *context, MDB_txn *txn)
{
  struct scan *scan = context;
  struct store *s = scan->store;
  MDB_val key;
  MDB_val data;
  int rc;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;

  TRY(env_verify(s->env, mdb_cursor_open(txn, s->sides[s->meta.live].tables.keys, &cursor), "read keys"));
  while ((rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) == MDB_SUCCESS) {
    if (data.mv_size != SLOTS_KEY_BYTES)
      FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a slot in table `keys`: " ENV_REMEDY, s->env->path);
    scan->keys_sum += digest(env_span(key), slots_decode(data.mv_data));
  }
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(s->env, rc, "read keys");
}

err_t store_scan(struct store *s, size_t chunk, store_visit visit, void *context)
{
  struct scan scan = { .store = s };
  uint64_t n_items = s->meta.sides[s->meta.live].n_items;

  assert(chunk > 0);
  while (scan.next < n_items) {
    uint64_t left = n_items - scan.next;
    scan.n = left < chunk ? left : chunk;
    region_reset(&s->chunk);
    TRY(region_array(&s->chunk, scan.n, sizeof *scan.changes, &scan.changes));
    TRY(store_read(s, read_chunk, &scan));
    TRY(visit(context, scan.changes, scan.n));
  }
  TRY(store_read(s, read_keys, &scan));
  if (scan.items_sum != scan.keys_sum)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `keys` does not agree with `items`: " ENV_REMEDY, s->env->path);
  return ERR_OK;
}
