/* SPDX-License-Identifier: Apache-2.0 */
/* The transaction in which changes are applied to keys, and the steps that both kinds of keys need: keys of one
 * partition (key_alone.h) and keys of several (key_states.h). */
#ifndef STORE_KEY_CONTEXT_H
#define STORE_KEY_CONTEXT_H

#include "store/keys/aside.h"
#include "store/keys/refused.h"
#include "store/keys/slots.h"
#include "store/store_effect.h"

struct key_context {
  struct slots *slots; /* its scratch region lives for one change */
  const struct aside *aside;
  const struct attribute_ids *ids;
  struct region *effects; /* memory of decoded items in effects; lives as long as the batch's effects */
  uint64_t log_number;
  uint64_t max_items;
  int64_t now_unix_ms;
  bool remembers_tombstones; /* also those of keys that no other partition has */
  struct refused_keys *refused;
  bool has_new_tombstone; /* set when a tombstone is stored */
};

/* Encode the record that a put makes of the stored record of its partition.
 *
 * stored  n = 0: none. Ignored if the change is whole
 * out     lives in the scratch region
 *
 * Returns ERR_OK; ERR_ITEM when the record would be too large; ERR_STORE_CORRUPT; ERR_MEMORY.
 */
err_t key_context_encode_put(const struct key_context *k, const struct item_change *change, struct span stored,
                             struct span *out);

/* Encode the tombstone of a delete, in the scratch region. */
err_t key_context_encode_tombstone(const struct key_context *k, const struct item_change *change, struct span *out);

/* Store a tombstone in table `aside`. */
err_t key_context_put_tombstone(struct key_context *k, const struct item_change *change, struct span tombstone);

/* Must the change be refused? True if it is a put that would overtake a refused put of its key, or if it would add an
 * item to a full catalogue. A delete may overtake a refused put, because it would delete that put's item anyway.
 *
 * makes_item  the change adds an item to the catalogue
 */
bool key_context_must_refuse(const struct key_context *k, const struct item_change *change, bool makes_item);

/* Refuse the change: later puts of its key in its partition are refused too. */
err_t key_context_refuse(struct key_context *k, const struct item_change *change, enum store_effect *kind);

#endif
