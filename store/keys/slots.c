/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, writing and removing items in their slots. */
#include "store/keys/slots.h"

#include "base/log.h"

/* Find the key of a slot by searching all of `keys`: the record itself may be unreadable. Only damaged stores pay for
 * the slow search. */
static struct span find_key_of(const struct slots *s, uint64_t slot)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key;
  MDB_val value;

  if (mdb_cursor_open(s->txn, s->tables->keys, &cursor) != MDB_SUCCESS)
    return (struct span){ 0 };
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS)
    if (value.mv_size == SLOT_NUMBER_BYTES && slot_number_decode(value.mv_data) == slot)
      return env_span(key);
  return (struct span){ 0 };
}

err_t slots_fail_damaged(const struct slots *s, uint64_t slot)
{
  struct span key = find_key_of(s, slot); /* it leaves err_message() as it is */

  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the record of item %s in slot %llu: %s: " ENV_REMEDY, s->env->path,
       key.n ? log_quote(key) : "(unknown)", (unsigned long long)slot, err_message());
}

/* Read the item in a slot. Returns ERR_STORE_CORRUPT, with key and slot, when it is missing or damaged. */
static err_t read_slot(const struct slots *s, uint64_t slot, struct slots_item *out)
{
  uint8_t slot_key[SLOT_NUMBER_BYTES];
  MDB_val key = { SLOT_NUMBER_BYTES, slot_key };
  MDB_val data;

  slot_number_encode(slot, slot_key);
  int rc = mdb_get(s->txn, s->tables->items, &key, &data);
  if (rc == MDB_NOTFOUND) {
    err_set(ERR_STORE_CORRUPT, __FILE__, __LINE__, "it is missing");
    return slots_fail_damaged(s, slot);
  }
  TRY(env_verify(s->env, rc, "read an item"));
  out->slot = slot;
  out->record = env_span(data);
  if (record_read_head(out->record, &out->head) != ERR_OK)
    return slots_fail_damaged(s, slot);
  if (out->head.is_tombstone) {
    err_set(ERR_STORE_CORRUPT, __FILE__, __LINE__, "it is a tombstone");
    return slots_fail_damaged(s, slot);
  }
  return ERR_OK;
}

static err_t find_slot(const struct slots *s, struct span key, bool *is_found, uint64_t *slot)
{
  MDB_val name = env_value(key);
  MDB_val data;

  if (s->bulk) {
    *slot = bulk_keys_current(s->bulk)->slot;
    *is_found = *slot != BULK_KEYS_NONE;
    return ERR_OK;
  }
  int rc = mdb_get(s->txn, s->tables->keys, &name, &data);
  *is_found = rc != MDB_NOTFOUND;
  if (!*is_found)
    return ERR_OK;
  TRY(env_verify(s->env, rc, "look a key up"));
  return bulk_keys_read_row(s->env, key, data, slot);
}

err_t slots_find(const struct slots *s, struct span key, bool *is_found, struct slots_item *out)
{
  uint64_t slot;

  TRY(find_slot(s, key, is_found, &slot));
  if (!*is_found)
    return ERR_OK;
  TRY(read_slot(s, slot, out));
  if (!span_equal(out->head.key, key))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: slot %llu of item %s holds item %s: " ENV_REMEDY, s->env->path,
         (unsigned long long)out->slot, log_quote(key), log_quote(out->head.key));
  return ERR_OK;
}

static err_t put_record(struct slots *s, uint64_t slot, struct span record, unsigned flags)
{
  uint8_t slot_key[SLOT_NUMBER_BYTES];
  MDB_val key = { SLOT_NUMBER_BYTES, slot_key };
  MDB_val data = env_value(record);

  slot_number_encode(slot, slot_key);
  return env_verify(s->env, mdb_put(s->txn, s->tables->items, &key, &data, flags), "write an item");
}

static err_t put_key(struct slots *s, struct span key, uint64_t slot)
{
  uint8_t slot_key[SLOT_NUMBER_BYTES];
  MDB_val name = env_value(key);
  MDB_val data = { SLOT_NUMBER_BYTES, slot_key };

  slot_number_encode(slot, slot_key);
  return env_verify(s->env, mdb_put(s->txn, s->tables->keys, &name, &data, 0), "write a key");
}

/* Append a record, and note its slot: the key is put with the others of the batch. */
static err_t append_bulk(const struct slots *s, struct span record)
{
  uint8_t slot_key[SLOT_NUMBER_BYTES];
  MDB_val key = { SLOT_NUMBER_BYTES, slot_key };
  MDB_val data = env_value(record);

  slot_number_encode(s->n, slot_key);
  TRY(env_verify(s->env, mdb_cursor_put(s->end, &key, &data, MDB_APPEND), "write an item"));
  bulk_keys_current(s->bulk)->slot = s->n;
  bulk_keys_current(s->bulk)->is_new = true;
  return ERR_OK;
}

err_t slots_append(struct slots *s, struct span key, struct span record)
{
  if (s->bulk) {
    TRY(append_bulk(s, record));
  } else {
    TRY(put_record(s, s->n, record, MDB_APPEND));
    TRY(put_key(s, key, s->n));
  }
  s->n++;
  return ERR_OK;
}

err_t slots_end_bulk(struct slots *s)
{
  struct bulk_keys *bulk = s->bulk;

  s->bulk = NULL;
  return bulk ? bulk_keys_write(s->env, s->txn, s->tables->keys, bulk) : ERR_OK;
}

err_t slots_overwrite(struct slots *s, uint64_t slot, struct span record)
{
  return put_record(s, slot, record, 0);
}

/* Move the last record into an empty slot. It is copied first, because a write may reuse its page. */
static err_t move_last(struct slots *s, uint64_t hole)
{
  struct slots_item last;
  struct record_head head;
  struct span copy;

  TRY(read_slot(s, s->n - 1, &last));
  TRY(region_copy(s->scratch, last.record, &copy));
  TRY(record_read_head(copy, &head));
  TRY(put_record(s, hole, copy, 0));
  return put_key(s, head.key, hole);
}

err_t slots_del(struct slots *s, uint64_t slot, struct span key)
{
  uint8_t slot_key[SLOT_NUMBER_BYTES];
  MDB_val last = { SLOT_NUMBER_BYTES, slot_key };
  MDB_val name = env_value(key);

  TRY(slots_end_bulk(s)); /* slots are about to move */
  if (slot != s->n - 1)
    TRY(move_last(s, slot));
  slot_number_encode(s->n - 1, slot_key);
  TRY(env_verify(s->env, mdb_del(s->txn, s->tables->items, &last, NULL), "delete an item"));
  TRY(env_verify(s->env, mdb_del(s->txn, s->tables->keys, &name, NULL), "delete a key"));
  s->n--;
  return ERR_OK;
}
