/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting the keys of a batch, and reading and writing table `keys` with a cursor that only moves forward. */
#include "store/keys/bulk_keys.h"

#include <endian.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/size.h"
#include "store/keys/slot_number.h"
#include "store/record/record.h"

/* A change's key while it is sorted. */
struct entry {
  uint64_t head; /* the first bytes behind those that all keys share, as a number: most comparisons end here */
  struct span key;
  uint32_t change;
};

static int compare(const void *a, const void *b)
{
  const struct entry *x = a, *y = b;

  if (x->head != y->head)
    return x->head < y->head ? -1 : 1;
  return span_compare(x->key, y->key); /* LMDB's order */
}

/* Return how many bytes all keys begin with in common. */
static size_t count_common(const struct item_change *changes, size_t n)
{
  struct span first = changes[0].key;
  size_t common = first.n;

  for (size_t i = 1; i < n; i++) {
    size_t same = 0, most = size_min(changes[i].key.n, common);
    while (same < most && changes[i].key.p[same] == first.p[same])
      same++;
    common = same;
  }
  return common;
}

static uint64_t head_of(struct span key, size_t from)
{
  uint64_t head = 0;
  size_t n = size_min(key.n - from, sizeof head);

  memcpy(&head, key.p + from, n);
  return be64toh(head);
}

static err_t sort(const struct item_change *changes, size_t n, struct region *region, struct entry **out)
{
  size_t common = count_common(changes, n);
  struct entry *entries;

  TRY(region_array(region, n, sizeof *entries, &entries));
  for (size_t i = 0; i < n; i++)
    entries[i] = (struct entry){ head_of(changes[i].key, common), changes[i].key, (uint32_t)i };
  qsort(entries, n, sizeof *entries, compare);
  *out = entries;
  return ERR_OK;
}

err_t bulk_keys_read_row(const struct env *env, struct span key, MDB_val row, uint64_t *slot)
{
  if (row.mv_size != SLOT_NUMBER_BYTES)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the slot of item %s: " ENV_REMEDY, env->path, log_quote(key));
  *slot = slot_number_decode(row.mv_data);
  return ERR_OK;
}

static err_t find(struct env *env, MDB_cursor *cursor, struct bulk_key *key)
{
  MDB_val name = env_value(key->key);
  MDB_val data;
  int rc = mdb_cursor_get(cursor, &name, &data, MDB_SET);

  key->slot = BULK_KEYS_NONE;
  if (rc == MDB_NOTFOUND)
    return ERR_OK;
  TRY(env_verify(env, rc, "look a key up"));
  return bulk_keys_read_row(env, key->key, data, &key->slot);
}

err_t bulk_keys_read(struct env *env, MDB_txn *txn, MDB_dbi table, const struct item_change *changes, size_t n,
                     struct region *region, struct bulk_keys *out)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  struct entry *entries;

  *out = (struct bulk_keys){ 0 };
  for (size_t i = 0; i < n; i++)
    TRY(record_verify_key(changes[i].key));
  TRY(sort(changes, n, region, &entries));
  TRY(region_array(region, n, sizeof *out->keys, &out->keys));
  TRY(region_array(region, n, sizeof *out->of_change, &out->of_change));
  TRY(env_verify(env, mdb_cursor_open(txn, table, &cursor), "read keys"));
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || !span_equal(entries[i].key, entries[i - 1].key)) {
      out->keys[out->n].key = entries[i].key;
      TRY(find(env, cursor, &out->keys[out->n++]));
    }
    out->of_change[entries[i].change] = (uint32_t)(out->n - 1);
  }
  return ERR_OK;
}

err_t bulk_keys_write(struct env *env, MDB_txn *txn, MDB_dbi table, struct bulk_keys *keys)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;

  TRY(env_verify(env, mdb_cursor_open(txn, table, &cursor), "write keys"));
  for (size_t i = 0; i < keys->n; i++) {
    struct bulk_key *key = &keys->keys[i];
    uint8_t slot[SLOT_NUMBER_BYTES];
    MDB_val name = env_value(key->key);
    MDB_val data = { sizeof slot, slot };
    if (!key->is_new)
      continue;
    slot_number_encode(key->slot, slot);
    TRY(env_verify(env, mdb_cursor_put(cursor, &name, &data, 0), "write a key"));
    key->is_new = false;
  }
  return ERR_OK;
}
