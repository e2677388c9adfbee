/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a store: `meta`, and four for each catalogue.
 *
 * There is room for three catalogues, called sides: the live one, the one of a rebuild, and one whose rows are
 * being freed. Table `meta` says which side is which.
 */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "store/lmdb/env.h"

enum { TABLES_SIDES = 3 };

struct tables {
  MDB_dbi items;     /* slot, big-endian -> record */
  MDB_dbi keys;      /* key -> slot */
  MDB_dbi aside;     /* key and partition -> record: see aside.h */
  MDB_dbi positions; /* partition, big-endian -> position */
};

/* Open the table `meta`. Read the schema from it before touching the other tables.
 *
 * is_new  the environment has no tables at all, so `meta` was not opened
 *
 * Returns ERR_STORE_CORRUPT when the environment belongs to another program.
 */
err_t tables_open_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta, bool *is_new);

/* Create the table `meta`. */
err_t tables_create_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta);

/* Open the tables of a side.
 *
 * creates  create the missing tables; if false, a missing table is ERR_STORE_CORRUPT
 */
err_t tables_open_side(struct env *env, MDB_txn *txn, size_t side, bool creates, struct tables *out);

/* Count the rows of a table. */
err_t tables_count(struct env *env, MDB_txn *txn, MDB_dbi table, uint64_t *out);

/* Count the rows of all tables of a side. */
err_t tables_count_side(struct env *env, MDB_txn *txn, const struct tables *tables, uint64_t *out);

/* Delete all rows of a side. The time grows with the number of their pages. */
err_t tables_clear_side(struct env *env, MDB_txn *txn, const struct tables *tables);

/* Delete up to *budget rows of a side, last rows of each table first. Subtracts the deleted rows from *budget. */
err_t tables_trim_side(struct env *env, MDB_txn *txn, const struct tables *tables, size_t *budget);

#endif
