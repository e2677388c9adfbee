/* SPDX-License-Identifier: Apache-2.0 */
/* Applying one change: find the key's item, then apply the change to a key of one partition or of several. */
#include "store/keys/key_apply.h"

#include "store/keys/key_alone.h"
#include "store/keys/key_states.h"

/* Can only the partition of the change have a state of the key? */
static err_t check_alone(const struct key_context *k, const struct item_change *change, const struct slots_item *item,
                         bool *is_alone)
{
  if (!item)
    return aside_check_empty(k->aside, is_alone);
  *is_alone =
      item->head.log_number != k->log_number || (item->head.partition == change->partition && !item->head.has_aside);
  return ERR_OK;
}

/* Give a sweep the place of the item's newest record. */
static void place_sweep(const struct slots_item *item, struct item_change *sweep)
{
  sweep->partition = item->head.partition;
  sweep->offset = item->head.offset;
  sweep->timestamp_ms = item->head.timestamp_ms;
}

err_t key_apply(struct key_context *k, const struct item_change *change, enum store_effect *kind,
                struct item_change *effect)
{
  struct slots_item found;
  bool has_item, is_alone;

  TRY(record_verify_key(change->key));
  TRY(slots_find(k->slots, change->key, &has_item, &found));
  const struct slots_item *item = has_item ? &found : NULL;
  struct item_change sweep = *change;
  if (change->is_sweep) {
    *kind = STORE_SKIPPED;
    if (!item)
      return ERR_OK;
    place_sweep(item, &sweep);
    change = &sweep;
  }
  TRY(check_alone(k, change, item, &is_alone));
  err_code_t err =
      is_alone ? key_alone_apply(k, change, item, kind, effect) : key_states_apply(k, change, item, kind, effect);
  if (err != ERR_ITEM)
    return err;
  *kind = STORE_UNFIT; /* encoding comes before writing, so nothing was written */
  return ERR_OK;
}
