/* SPDX-License-Identifier: Apache-2.0 */
/* The table `aside`: of keys that several partitions have records of, the states that are not the item; and remembered
 * tombstones. Rows of one key lie together, in order of partition.
 *
 * Rows of an older generation are left over from a log that was forgotten: they count for nothing.
 */
#ifndef STORE_ASIDE_H
#define STORE_ASIDE_H

#include "store/record.h"
#include "store/tables.h"

/* A row's key: size of the item's key, the key, the partition. */
enum { ASIDE_KEY_MAX = 2 + ITEM_KEY_MAX + 4 };

struct aside {
  struct env *env;
  MDB_dbi table;
  MDB_txn *txn;
  uint64_t generation;
};

/* Is there nothing at all? */
err_t aside_check_empty(const struct aside *a, bool *is_empty);

/* What one partition says of a key. */
struct aside_state {
  struct record_head head;
  struct span record;
};

/* All states of a key, copied into the region.
 *
 * Returns ERR_STORE_CORRUPT, with key and partition, when one is damaged.
 */
err_t aside_get(const struct aside *a, struct span key, struct region *region, struct aside_state **states, size_t *n);

err_t aside_put(const struct aside *a, struct span key, int32_t partition, struct span record);

/* Where there is no such row, nothing happens. */
err_t aside_del(const struct aside *a, struct span key, int32_t partition);

/* The first row at or behind a row's key (n = 0: the first of all), whatever its generation. `row` gets its key.
 *
 * state  its record points into the transaction
 */
err_t aside_next(const struct aside *a, struct span from, uint8_t row[ASIDE_KEY_MAX], size_t *row_bytes,
                 struct aside_state *state, bool *is_found);

#endif
