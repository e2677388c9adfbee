/* SPDX-License-Identifier: Apache-2.0 */
/* The tables `items` and `keys` within one transaction: records in dense slots, found by key.
 *
 * `keys` needs no seal of its own: a record that is found by a key is checked to carry that key, and a scan compares
 * the tables as wholes.
 */
#ifndef STORE_SLOTS_H
#define STORE_SLOTS_H

#include "store/record.h"
#include "store/tables.h"

enum { SLOTS_KEY_BYTES = 8 };

struct slots {
  struct env *env;
  const struct tables *tables; /* of one catalogue */
  MDB_txn *txn;
  struct region *scratch; /* for what has to outlive a page while it is moved */
  uint64_t n;             /* slots in use, 0..n-1 */
};

struct slots_item {
  uint64_t slot;
  struct span record; /* valid until the next change in the transaction, as is head.key */
  struct record_head head;
};

/* The key of a slot in table `items`: big-endian, so that slots are in order. */
void slots_encode(uint64_t slot, uint8_t out[SLOTS_KEY_BYTES]);
uint64_t slots_decode(const uint8_t key[SLOTS_KEY_BYTES]);

/* Find an item by its key. Returns ERR_STORE_CORRUPT, with key and slot, when its record is damaged. */
err_t slots_find(const struct slots *s, struct span key, bool *is_found, struct slots_item *out);

/* Read the item in a slot. Returns ERR_STORE_CORRUPT, with key and slot, when there is none or it is damaged. */
err_t slots_get(const struct slots *s, uint64_t slot, struct slots_item *out);

err_t slots_append(struct slots *s, struct span key, struct span record);
err_t slots_overwrite(struct slots *s, uint64_t slot, struct span record);

/* Remove an item; the last one moves into its slot. `key` must not point into the transaction. */
err_t slots_del(struct slots *s, uint64_t slot, struct span key);

/* Report a damaged record: the newest failure is the reason. Finds its key by going through `keys`. */
err_t slots_fail_damaged(const struct slots *s, uint64_t slot);

#endif
