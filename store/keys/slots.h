/* SPDX-License-Identifier: Apache-2.0 */
/* The tables `items` and `keys` within one transaction: records in dense slots, found by key.
 *
 * Values in `keys` need no seal. A record found by a key must carry that key, and store_scan_end() compares the whole
 * tables.
 */
#ifndef STORE_SLOTS_H
#define STORE_SLOTS_H

#include "store/keys/bulk_keys.h"
#include "store/keys/slot_number.h"
#include "store/lmdb/tables.h"
#include "store/record/record.h"

struct slots {
  struct env *env;
  const struct tables *tables; /* of one catalogue */
  MDB_txn *txn;
  struct region *scratch; /* for copies of records whose pages LMDB may reuse */
  uint64_t n;             /* slots 0..n-1 are in use */
  struct bulk_keys *bulk; /* the keys of the batch that is being applied; NULL: table `keys` is used directly */
  MDB_cursor *end;        /* with bulk keys: stays at the end of table `items` */
};

struct slots_item {
  uint64_t slot;
  struct span record; /* valid until the next write in the transaction; head.key too */
  struct record_head head;
};

/* Find an item by its key. With bulk keys, it is the key of the change that is being applied; the same holds for
 * slots_append(). Returns ERR_STORE_CORRUPT, with key and slot, when its record is damaged. */
err_t slots_find(const struct slots *s, struct span key, bool *is_found, struct slots_item *out);

/* Add an item in a new slot, n. */
err_t slots_append(struct slots *s, struct span key, struct span record);

/* Bring table `keys` up to date, and use it directly from now on. Does nothing without bulk keys. */
err_t slots_end_bulk(struct slots *s);

/* Replace the record in a slot by another one of the same key. */
err_t slots_overwrite(struct slots *s, uint64_t slot, struct span record);

/* Remove an item. The last item moves into its slot. `key` must not point into memory of the transaction. */
err_t slots_del(struct slots *s, uint64_t slot, struct span key);

/* Fail with ERR_STORE_CORRUPT for a damaged record, with err_message() as the reason. Searches `keys` for the item's
 * key, which takes time in proportion to the table. */
err_t slots_fail_damaged(const struct slots *s, uint64_t slot);

#endif
