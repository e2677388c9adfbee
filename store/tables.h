/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a store: `meta`, and four for each catalogue.
 *
 * There is room for three catalogues, called sides: the live one, the one that a rebuild fills, and one whose rows are
 * being freed. Which is which, `meta` says.
 */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "store/env.h"

enum { TABLES_SIDES = 3 };

struct tables {
  MDB_dbi items;     /* slot, big-endian -> record */
  MDB_dbi keys;      /* key -> slot */
  MDB_dbi aside;     /* key and partition -> record: see aside.h */
  MDB_dbi positions; /* partition, big-endian -> position */
};

/* Open the table `meta`; is_new: an environment that has no table, so none was opened. What `meta` says of the schema
 * is to be read before the other tables are touched.
 *
 * Returns ERR_STORE_CORRUPT when the environment is someone else's.
 */
err_t tables_open_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta, bool *is_new);

/* Create it. */
err_t tables_create_meta(struct env *env, MDB_txn *txn, MDB_dbi *meta);

/* Open the tables of a side; with `creates`, those that are missing are created, else they are ERR_STORE_CORRUPT. */
err_t tables_open_side(struct env *env, MDB_txn *txn, size_t side, bool creates, struct tables *out);

/* Rows of a table. */
err_t tables_count(struct env *env, MDB_txn *txn, MDB_dbi table, uint64_t *out);

/* Rows of all tables of a side. */
err_t tables_count_side(struct env *env, MDB_txn *txn, const struct tables *tables, uint64_t *out);

/* Delete all rows of a side in this transaction. It costs as much as there are pages. */
err_t tables_clear_side(struct env *env, MDB_txn *txn, const struct tables *tables);

/* Delete up to *budget rows of a side, the last ones of each table first; *budget becomes what is left of it. */
err_t tables_trim_side(struct env *env, MDB_txn *txn, const struct tables *tables, size_t *budget);

#endif
