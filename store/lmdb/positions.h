/* SPDX-License-Identifier: Apache-2.0 */
/* The table `positions`, and a list of its rows in memory, in order of partition. */
#ifndef STORE_POSITIONS_H
#define STORE_POSITIONS_H

#include "store/lmdb/tables.h"
#include "store/store_position.h"

/* All zeros are an empty list. */
struct positions {
  struct store_position *rows;
  size_t n;
  size_t capacity;
};

void positions_fini(struct positions *p);
void positions_clear(struct positions *p);

/* Make `to` equal to `from`. */
err_t positions_copy(const struct positions *from, struct positions *to);

/* Put a position into the list, unless the list has a later one for that partition. */
err_t positions_advance(struct positions *p, const struct store_position *position);

/* Return the row of a partition, or NULL. */
const struct store_position *positions_find(const struct positions *p, int32_t partition);

/* Read all rows of the table. Returns ERR_STORE_CORRUPT with the partition when a row is damaged. */
err_t positions_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct positions *out);

/* Write one row to the table. */
err_t positions_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct store_position *position);

#endif
