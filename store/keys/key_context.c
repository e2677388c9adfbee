/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that both kinds of keys need: encoding states, storing tombstones, refusing puts. */
#include "store/keys/key_context.h"

#include "store/record/item_merge.h"

err_t key_context_encode_put(const struct key_context *k, const struct item_change *change, struct span stored,
                             struct span *out)
{
  struct region *region = k->slots->scratch;
  struct item_change before = { 0 };
  struct item_change after;

  if (stored.n && !change->is_whole)
    TRY(record_decode(stored, k->ids, region, &before));
  TRY(item_merge(&before, change, region, &after));
  return record_encode(&after, k->log_number, k->ids, region, out);
}

err_t key_context_encode_tombstone(const struct key_context *k, const struct item_change *change, struct span *out)
{
  return record_encode_tombstone(change, k->log_number, k->now_unix_ms, k->slots->scratch, out);
}

err_t key_context_put_tombstone(struct key_context *k, const struct item_change *change, struct span tombstone)
{
  k->has_new_tombstone = true;
  return aside_put(k->aside, change->key, change->partition, tombstone);
}

bool key_context_must_refuse(const struct key_context *k, const struct item_change *change, bool makes_item)
{
  bool would_overtake = !change->is_delete && refused_keys_has(k->refused, change->key, change->partition);

  return would_overtake || (makes_item && k->slots->n >= k->max_items);
}

err_t key_context_refuse(struct key_context *k, const struct item_change *change, enum store_effect *kind)
{
  *kind = STORE_REFUSED;
  return refused_keys_add(k->refused, change->key, change->partition);
}
