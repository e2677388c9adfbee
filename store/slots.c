/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, writing and removing items in their slots. */
#include "store/slots.h"

#include "base/log.h"

#include <endian.h>
#include <stdio.h>

void slots_encode(uint64_t slot, uint8_t out[SLOTS_KEY_BYTES])
{
  uint64_t big_endian = htobe64(slot);

  memcpy(out, &big_endian, sizeof big_endian);
}

uint64_t slots_decode(const uint8_t key[SLOTS_KEY_BYTES])
{
  uint64_t big_endian;

  memcpy(&big_endian, key, sizeof big_endian);
  return be64toh(big_endian);
}

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
    if (value.mv_size == SLOTS_KEY_BYTES && slots_decode(value.mv_data) == slot)
      return env_span(key);
  return (struct span){ 0 };
}

err_t slots_fail_damaged(const struct slots *s, uint64_t slot)
{
  char reason[256];

  snprintf(reason, sizeof reason, "%s", err_message());
  struct span key = find_key_of(s, slot);
  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the record of item %s in slot %llu: %s: " ENV_REMEDY, s->env->path,
       key.n ? log_quote(key) : "(unknown)", (unsigned long long)slot, reason);
}

/* Read the item in a slot. Returns ERR_STORE_CORRUPT, with key and slot, when it is missing or damaged. */
static err_t read_slot(const struct slots *s, uint64_t slot, struct slots_item *out)
{
  uint8_t slot_key[SLOTS_KEY_BYTES];
  MDB_val key = { SLOTS_KEY_BYTES, slot_key };
  MDB_val data;

  slots_encode(slot, slot_key);
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

err_t slots_find(const struct slots *s, struct span key, bool *is_found, struct slots_item *out)
{
  MDB_val name = env_value(key);
  MDB_val data;
  int rc = mdb_get(s->txn, s->tables->keys, &name, &data);

  *is_found = rc != MDB_NOTFOUND;
  if (!*is_found)
    return ERR_OK;
  TRY(env_verify(s->env, rc, "look a key up"));
  if (data.mv_size != SLOTS_KEY_BYTES)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: the slot of item %s: " ENV_REMEDY, s->env->path, log_quote(key));
  TRY(read_slot(s, slots_decode(data.mv_data), out));
  if (!span_equal(out->head.key, key))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: slot %llu of item %s holds item %s: " ENV_REMEDY, s->env->path,
         (unsigned long long)out->slot, log_quote(key), log_quote(out->head.key));
  return ERR_OK;
}

static err_t put_record(struct slots *s, uint64_t slot, struct span record, unsigned flags)
{
  uint8_t slot_key[SLOTS_KEY_BYTES];
  MDB_val key = { SLOTS_KEY_BYTES, slot_key };
  MDB_val data = env_value(record);

  slots_encode(slot, slot_key);
  return env_verify(s->env, mdb_put(s->txn, s->tables->items, &key, &data, flags), "write an item");
}

static err_t put_key(struct slots *s, struct span key, uint64_t slot)
{
  uint8_t slot_key[SLOTS_KEY_BYTES];
  MDB_val name = env_value(key);
  MDB_val data = { SLOTS_KEY_BYTES, slot_key };

  slots_encode(slot, slot_key);
  return env_verify(s->env, mdb_put(s->txn, s->tables->keys, &name, &data, 0), "write a key");
}

err_t slots_append(struct slots *s, struct span key, struct span record)
{
  TRY(put_record(s, s->n, record, MDB_APPEND));
  TRY(put_key(s, key, s->n));
  s->n++;
  return ERR_OK;
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
  uint8_t slot_key[SLOTS_KEY_BYTES];
  MDB_val last = { SLOTS_KEY_BYTES, slot_key };
  MDB_val name = env_value(key);

  if (slot != s->n - 1)
    TRY(move_last(s, slot));
  slots_encode(s->n - 1, slot_key);
  TRY(env_verify(s->env, mdb_del(s->txn, s->tables->items, &last, NULL), "delete an item"));
  TRY(env_verify(s->env, mdb_del(s->txn, s->tables->keys, &name, NULL), "delete a key"));
  s->n--;
  return ERR_OK;
}
