/* SPDX-License-Identifier: Apache-2.0 */
/* One change of one key, and what it makes of the key's states: the rule for a key in several partitions (store.h). */
#ifndef STORE_KEY_STATES_H
#define STORE_KEY_STATES_H

#include "store/aside.h"
#include "store/refused.h"
#include "store/slots.h"
#include "store/store.h"

/* Where changes are applied, within one transaction. */
struct key_context {
  struct slots *slots;
  const struct aside *aside;
  struct region *effects; /* for items that take over: lives as long as the batch's effects */
  uint64_t generation;
  uint64_t max_items;
  int64_t now_unix_ms;
  bool remembers_tombstones; /* of keys that no other partition has */
  struct refused_keys *refused;
  bool has_new_tombstone; /* set when one was stored */
};

/* Apply a change.
 *
 * effect  with STORE_APPLIED: what the engine must apply
 *
 * Returns ERR_OK; ERR_ITEM when the key has an impossible size; ERR_STORE_CORRUPT; errors of writing.
 */
err_t key_apply(struct key_context *k, const struct item_change *change, enum store_effect *kind,
                struct item_change *effect);

#endif
