/* SPDX-License-Identifier: Apache-2.0 */
/* A key that only one partition has: its one state is the item, or a remembered tombstone. */
#include "store/keys/key_alone.h"

/* Must a tombstone keep older records of the key from being applied again? */
static bool must_remember(const struct key_context *k, const struct item_change *change, const struct slots_item *item)
{
  /* The offset of an item of a former log means nothing in this one. */
  return k->remembers_tombstones && !(change->is_sweep && item->head.log_number != k->log_number);
}

static err_t del(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                 enum store_effect *kind)
{
  struct span tombstone;
  bool is_remembered = must_remember(k, change, item);

  *kind = item ? STORE_APPLIED : STORE_SKIPPED;
  if (is_remembered)
    TRY(key_context_encode_tombstone(k, change, &tombstone));
  if (item)
    TRY(slots_del(k->slots, item->slot, change->key));
  return is_remembered ? key_context_put_tombstone(k, change, tombstone) : ERR_OK;
}

static err_t put(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                 enum store_effect *kind)
{
  struct span record;

  if (key_context_must_refuse(k, change, !item))
    return key_context_refuse(k, change, kind);
  *kind = STORE_APPLIED;
  TRY(key_context_encode_put(k, change, item ? item->record : (struct span){ 0 }, &record));
  return item ? slots_overwrite(k->slots, item->slot, record) : slots_append(k->slots, change->key, record);
}

err_t key_alone_apply(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                      enum store_effect *kind, struct item_change *effect)
{
  *effect = *change;
  if (item && item->head.log_number == k->log_number && change->offset <= item->head.offset && !change->is_sweep) {
    *kind = STORE_SKIPPED;
    return ERR_OK;
  }
  return change->is_delete ? del(k, change, item, kind) : put(k, change, item, kind);
}
