/* SPDX-License-Identifier: Apache-2.0 */
/* Scanning the live catalogue: take every item, in chunks of slots, and verify that the tables agree. */
#include "base/size.h"
#include "store/store_private.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Rows of `keys` that are read with each item: more than one, so that the table is read when the items are. */
enum { KEYS_PER_ITEM = 2 };

/* Sums of digests do not depend on the order, so each table is read in its own order. */
static uint64_t digest(struct span key, uint64_t slot)
{
  return XXH3_64bits_withSeed(key.p, key.n, slot);
}

/* Decode the record that the cursor found. It must be the record of slot `slot`. */
static err_t read_item(struct slots *slots, const struct attribute_ids *ids, int rc, const MDB_val *key,
                       const MDB_val *data, uint64_t slot, struct region *region, struct item_change *out)
{
  err_code_t err = ERR_OK;

  if (rc != MDB_NOTFOUND)
    TRY(env_verify(slots->env, rc, "read items"));
  if (rc == MDB_NOTFOUND || key->mv_size != SLOT_NUMBER_BYTES || slot_number_decode(key->mv_data) != slot)
    err = err_set(ERR_STORE_CORRUPT, __FILE__, __LINE__, "it is missing");
  else
    err = record_decode(env_span(*data), ids, region, out);
  if (err == ERR_STORE_CORRUPT)
    return slots_fail_damaged(slots, slot);
  return err;
}

/* A piece of the scan: one transaction reads it. */
struct piece {
  struct store_scan *scan;
  uint64_t first;
  size_t n;
  struct region *region;
  struct item_change *changes;
};

static err_code_t read_items(void *context, MDB_txn *txn)
{
  struct piece *piece = context;
  struct store *s = piece->scan->store;
  struct slots slots = store_slots(s, txn, s->meta.live);
  uint8_t first[SLOT_NUMBER_BYTES];
  MDB_val key = { sizeof first, first };
  MDB_val data;
  uint64_t sum = 0;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;

  slot_number_encode(piece->first, first);
  TRY(env_verify(s->env, mdb_cursor_open(txn, slots.tables->items, &cursor), "read items"));
  for (size_t i = 0; i < piece->n; i++) {
    int rc = mdb_cursor_get(cursor, &key, &data, i == 0 ? MDB_SET_RANGE : MDB_NEXT);
    TRY(read_item(&slots, &s->attribute_ids, rc, &key, &data, piece->first + i, piece->region, &piece->changes[i]));
    sum += digest(piece->changes[i].key, piece->first + i);
  }
  atomic_fetch_add(&piece->scan->items_sum, sum);
  return ERR_OK;
}

/* Read the next rows of table `keys`. */
static err_code_t read_keys(void *context, MDB_txn *txn)
{
  struct piece *piece = context;
  struct store_scan *scan = piece->scan;
  struct store *s = scan->store;
  MDB_val key = { scan->key_bytes, scan->key };
  MDB_val data;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;

  TRY(env_verify(s->env, mdb_cursor_open(txn, s->sides[s->meta.live].tables.keys, &cursor), "read keys"));
  int rc = mdb_cursor_get(cursor, &key, &data, scan->key_bytes ? MDB_SET_RANGE : MDB_FIRST);
  for (size_t i = 0; i < piece->n && rc == MDB_SUCCESS; i++) {
    if (data.mv_size != SLOT_NUMBER_BYTES)
      FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a slot in table `keys`: " ENV_REMEDY, s->env->path);
    if (scan->n_keys++ == scan->n_items) /* or a damaged table may be read for ever */
      FAIL(ERR_STORE_CORRUPT, "store %s is damaged: table `keys` has more rows than there are items: " ENV_REMEDY,
           s->env->path);
    scan->keys_sum += digest(env_span(key), slot_number_decode(data.mv_data));
    rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
  }
  scan->has_read_keys = rc == MDB_NOTFOUND;
  if (rc == MDB_NOTFOUND)
    return ERR_OK;
  TRY(env_verify(s->env, rc, "read keys"));
  if (key.mv_size > sizeof scan->key)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a key in table `keys`: " ENV_REMEDY, s->env->path);
  memcpy(scan->key, key.mv_data, key.mv_size);
  scan->key_bytes = key.mv_size;
  return ERR_OK;
}

/* Read on in `keys`, unless another thread does. */
static err_t read_some_keys(struct store_scan *scan, size_t n)
{
  struct piece piece = { .scan = scan, .n = n };
  err_code_t err = ERR_OK;

  if (pthread_mutex_trylock(&scan->keys_lock) != 0)
    return ERR_OK;
  if (!scan->has_read_keys)
    err = env_read(scan->store->env, read_keys, &piece);
  pthread_mutex_unlock(&scan->keys_lock);
  return err;
}

err_t store_scan_begin(struct store *s, size_t chunk, struct store_scan *out)
{
  assert(chunk > 0);
  TRY(store_ensure_open(s)); /* here, because threads that scan together must not */
  *out = (struct store_scan){
    .store = s,
    .chunk = chunk,
    .n_items = s->meta.sides[s->meta.live].n_items,
    .keys_lock = PTHREAD_MUTEX_INITIALIZER,
  };
  return ERR_OK;
}

err_t store_scan_next(struct store_scan *scan, struct region *region, uint64_t *first, struct item_change **changes,
                      size_t *n)
{
  struct piece piece = { .scan = scan, .first = atomic_fetch_add(&scan->next, scan->chunk), .region = region };

  *n = 0;
  TRY(read_some_keys(scan, KEYS_PER_ITEM * scan->chunk));
  if (piece.first >= scan->n_items)
    return ERR_OK;
  piece.n = size_min(scan->n_items - piece.first, scan->chunk);
  TRY(region_array(region, piece.n, sizeof *piece.changes, &piece.changes));
  TRY(env_read(scan->store->env, read_items, &piece));
  *first = piece.first;
  *changes = piece.changes;
  *n = piece.n;
  return ERR_OK;
}

err_t store_scan_end(struct store_scan *scan)
{
  while (!scan->has_read_keys)
    TRY(read_some_keys(scan, scan->chunk));
  if (scan->items_sum != scan->keys_sum)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: `keys` does not agree with `items`: " ENV_REMEDY,
         scan->store->env->path);
  return ERR_OK;
}
