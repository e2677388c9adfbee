/* SPDX-License-Identifier: Apache-2.0 */
/* The table `aside`: states that are not the item, of keys that several partitions have, and remembered tombstones.
 * Rows of one key lie together, in order of partition.
 *
 * Rows of another log than the present one are left over from a forgotten one, and are ignored.
 */
#ifndef STORE_ASIDE_H
#define STORE_ASIDE_H

#include "store/lmdb/tables.h"
#include "store/record/record.h"

/* Size of the longest row key: the item key's size, the item key and the partition. */
enum { ASIDE_KEY_MAX = 2 + ITEM_KEY_MAX + 4 };

struct aside {
  struct env *env;
  MDB_dbi table;
  MDB_txn *txn;
  uint64_t log_number;
};

/* Is the table empty? */
err_t aside_check_empty(const struct aside *a, bool *is_empty);

/* The state of a key in one partition. */
struct aside_state {
  struct record_head head;
  struct span record;
};

/* Get all states of a key that are kept aside, copied into the region.
 *
 * Returns ERR_STORE_CORRUPT, with key and partition, when a record is damaged.
 */
err_t aside_get(const struct aside *a, struct span key, struct region *region, struct aside_state **states, size_t *n);

/* Keep a record aside, replacing the former one of that key and partition. */
err_t aside_put(const struct aside *a, struct span key, int32_t partition, struct span record);

/* Delete the row of a key and partition, if there is one. */
err_t aside_del(const struct aside *a, struct span key, int32_t partition);

/* Find the first row whose key is not below `from`, of any log.
 *
 * from   a row key; n = 0: begin at the first row
 * row    set to the key of the row found
 * state  its record is valid until the transaction writes or ends
 */
err_t aside_next(const struct aside *a, struct span from, uint8_t row[ASIDE_KEY_MAX], size_t *row_bytes,
                 struct aside_state *state, bool *is_found);

#endif
