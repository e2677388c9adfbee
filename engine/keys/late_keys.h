/* SPDX-License-Identifier: Apache-2.0 */
/* Excluded keys that are not turned into slots before a search. An item that may enter the top K is looked up among
 * them, by the hash of its key. A search meets far fewer such items than a user has seen. */
#ifndef ENGINE_LATE_KEYS_H
#define ENGINE_LATE_KEYS_H

#include "engine/keys/key_set.h"
#include "engine/keys/keys.h"

enum { LATE_KEYS_SETS = 2 };

struct late_keys {
  const struct keys *keys; /* of the arena that is searched */
  const struct key_set *sets[LATE_KEYS_SETS];
  size_t n_sets;
};

/* Is the key of this slot, which has an item, in one of the sets? Thread: any, while the arena is in front. */
bool late_keys_exclude(const struct late_keys *l, uint32_t slot);

#endif
