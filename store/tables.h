/* The four tables of a store. */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "store/env.h"

struct tables {
  MDB_dbi items;     /* slot, big-endian -> record */
  MDB_dbi keys;      /* key -> slot */
  MDB_dbi positions; /* partition, big-endian -> position */
  MDB_dbi meta;      /* name -> value */
};

/* Open the table `meta`, or create it in an environment that has no table; `*is_new` tells which. What it says of the
 * schema is to be read before the other tables are touched.
 *
 * Returns ERR_STORE_CORRUPT when the environment is someone else's.
 */
err_t tables_open_meta(struct env *env, MDB_txn *txn, struct tables *out, bool *is_new);

/* Open, or create in a new store, the other tables. Returns ERR_STORE_CORRUPT when one is missing. */
err_t tables_open_rest(struct env *env, MDB_txn *txn, bool is_new, struct tables *out);

/* Rows of a table. */
err_t tables_count(struct env *env, MDB_txn *txn, MDB_dbi table, uint64_t *out);

#endif
