/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a walk is one transaction: it reads some keys, then the records that these name. */
#include "store/store_walk.h"

#include "store/store_private.h"

struct step {
  struct store *store;
  const struct store_walk *from;
  struct store_walk to;
  size_t max;
  struct region *region;
  struct span *keys; /* [n], copies */
  size_t n;
  struct item_change *changes; /* [n] */
  struct span space;           /* whose parts are removed */
  size_t n_removed;
};

/* Note where the next step begins: after the last key of this one. */
static void move_on(struct step *step)
{
  struct span last = step->keys[step->n - 1];

  memcpy(step->to.key, last.p, last.n);
  step->to.key[last.n] = 0; /* the least key above it */
  step->to.key_bytes = last.n + 1;
}

/* Copy the next keys: a write may reuse their pages. */
static err_t read_keys(struct step *step, const struct slots *slots)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  struct env *env = slots->env;
  MDB_val key = env_value(span_of(step->from->key, step->from->key_bytes)), data;

  step->to = *step->from;
  step->n = 0;
  TRY(region_array(step->region, step->max, sizeof *step->keys, &step->keys));
  TRY(env_verify(env, mdb_cursor_open(slots->txn, slots->tables->keys, &cursor), "read keys"));
  int rc = mdb_cursor_get(cursor, &key, &data, key.mv_size ? MDB_SET_RANGE : MDB_FIRST);
  for (; rc == MDB_SUCCESS && step->n < step->max; rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT))
    TRY(region_copy(step->region, env_span(key), &step->keys[step->n++]));
  step->to.is_over = rc == MDB_NOTFOUND;
  if (rc != MDB_NOTFOUND)
    TRY(env_verify(env, rc, "read keys"));
  if (step->n > 0)
    move_on(step);
  return ERR_OK;
}

/* Find the item of a key, which the table `keys` has. */
static err_t find(const struct slots *slots, struct span key, struct slots_item *out)
{
  bool is_found;

  TRY(slots_find(slots, key, &is_found, out));
  if (!is_found)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a key is lost: " ENV_REMEDY, slots->env->path);
  return ERR_OK;
}

static err_t decode(const struct step *step, const struct slots *slots, const struct slots_item *item,
                    struct item_change *out)
{
  err_code_t err = record_decode(item->record, &step->store->attribute_ids, step->region, out);

  return err == ERR_STORE_CORRUPT ? slots_fail_damaged(slots, item->slot) : err;
}

static err_code_t read_step(void *context, MDB_txn *txn)
{
  struct step *step = context;
  struct slots slots = store_slots(step->store, txn, step->store->meta.live);

  TRY(read_keys(step, &slots));
  TRY(region_array(step->region, step->n, sizeof *step->changes, &step->changes));
  for (size_t i = 0; i < step->n; i++) {
    struct slots_item item;
    TRY(find(&slots, step->keys[i], &item));
    TRY(decode(step, &slots, &item, &step->changes[i]));
  }
  return ERR_OK;
}

err_t store_walk_read(struct store *s, struct store_walk *walk, size_t max, struct region *region,
                      struct item_change **changes, size_t *n)
{
  struct step step = { .store = s, .from = walk, .max = max, .region = region };

  TRY(store_read(s, read_step, &step));
  *walk = step.to;
  *changes = step.changes;
  *n = step.n;
  return ERR_OK;
}

/* ---- Removing ---- */

/* Remove the parts of the space from a list. Returns false if there are none. */
static bool remove_parts(struct item_change *item, struct span space)
{
  size_t n = 0, n_before = item->n_parts;

  for (size_t i = 0; i < n_before; i++) {
    if (!span_equal(item->parts[i].space, space))
      item->parts[n++] = item->parts[i];
  }
  item->n_parts = n;
  return n < n_before;
}

static err_t remove_from(struct step *step, struct slots *slots, struct span key)
{
  struct slots_item item;
  struct item_change change;
  struct span record;

  TRY(find(slots, key, &item));
  TRY(decode(step, slots, &item, &change));
  if (!remove_parts(&change, step->space))
    return ERR_OK;
  TRY(record_encode(&change, item.head.log_number, &step->store->attribute_ids, step->region, &record));
  TRY(record_copy(record, item.head.has_aside, step->region, &record));
  step->n_removed++;
  return slots_overwrite(slots, item.slot, record);
}

static err_code_t remove_step(void *context, MDB_txn *txn)
{
  struct step *step = context;
  struct slots slots = store_slots(step->store, txn, step->store->meta.live);

  region_reset(step->region);
  step->n_removed = 0;
  TRY(read_keys(step, &slots));
  for (size_t i = 0; i < step->n; i++)
    TRY(remove_from(step, &slots, step->keys[i]));
  return ERR_OK;
}

err_t store_walk_remove(struct store *s, struct store_walk *walk, size_t max, struct span space, size_t *n,
                        size_t *n_removed)
{
  AUTO(region_fini) struct region region = { 0 };
  struct step step = { .store = s, .from = walk, .max = max, .region = &region, .space = space };

  TRY(store_write(s, remove_step, &step, &s->meta));
  *walk = step.to;
  *n = step.n;
  *n_removed = step.n_removed;
  return ERR_OK;
}
