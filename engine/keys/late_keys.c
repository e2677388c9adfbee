/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up one item among excluded keys. */
#include "engine/keys/late_keys.h"

static bool has_key(const struct key_set *set, uint32_t hash, const struct keys *keys, uint32_t slot)
{
  size_t at = hash;

  for (const struct span *key; (key = key_set_next(set, hash, &at));) {
    if (span_equal(*key, keys_get(keys, slot)))
      return true;
  }
  return false;
}

bool late_keys_exclude(const struct late_keys *l, uint32_t slot)
{
  uint32_t hash = keys_hash(l->keys, slot);

  for (size_t i = 0; i < l->n_sets; i++) {
    if (key_set_may_have(l->sets[i], hash) && has_key(l->sets[i], hash, l->keys, slot))
      return true;
  }
  return false;
}
