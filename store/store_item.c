/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one item, beside the thread that writes. The memory of the store belongs to that thread, so everything that a
 * transaction may change is read from the tables. */
#include "store/store_private.h"

struct reading {
  struct store *store;
  struct span key;
  size_t max_bytes;
  struct region *region;
  bool is_found;
  struct item_change item;
};

static err_code_t read_item(void *context, MDB_txn *txn)
{
  struct reading *r = context;
  struct store *s = r->store;
  struct slots_item found;
  struct meta meta;

  TRY(meta_get(s->env, txn, s->meta_table, &meta));
  struct slots slots = {
    .env = s->env, .tables = &s->sides[meta.live].tables, .txn = txn, .n = meta.sides[meta.live].n_items
  };
  TRY(slots_find(&slots, r->key, &r->is_found, &found));
  if (!r->is_found)
    return ERR_OK;
  if (found.record.n > r->max_bytes)
    FAIL(ERR_TOO_LARGE, "the item has %zu bytes, more than the limit of %zu", found.record.n, r->max_bytes);
  return record_decode(found.record, &s->attribute_ids, r->region, &r->item);
}

err_t store_read_item(struct store *s, struct span key, size_t max_bytes, struct region *region, bool *is_found,
                      struct item_change *out)
{
  struct reading r = { .store = s, .key = key, .max_bytes = max_bytes, .region = region };

  TRY(env_read(s->env, read_item, &r));
  *is_found = r.is_found;
  *out = r.item;
  return ERR_OK;
}
