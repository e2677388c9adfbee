/* SPDX-License-Identifier: Apache-2.0 */
/* The table `meta`: what is true of the store as a whole, each a sealed value under its name. */
#ifndef STORE_META_H
#define STORE_META_H

#include "store/tables.h"

/* Raised when an older daemon could misread what this one writes. */
enum { META_SCHEMA = 2 };

#define META_NO_SIDE UINT64_MAX

struct meta_side {
  uint64_t generation; /* of its log; records of an older one are kept from a log that was forgotten */
  uint64_t n_items;
};

/* Stored as it is. */
struct meta {
  uint64_t live;       /* side */
  uint64_t rebuilt;    /* side, or META_NO_SIDE */
  uint64_t n_rebuilds; /* begun ever */
  uint64_t generation; /* the newest one given out */
  struct meta_side sides[TABLES_SIDES];
};

/* The side that follows the log. */
static inline size_t meta_current(const struct meta *meta)
{
  return meta->rebuilt == META_NO_SIDE ? meta->live : meta->rebuilt;
}

/* Is the side neither live nor being rebuilt? Then its rows are to be freed. */
static inline bool meta_is_dropped(const struct meta *meta, size_t side)
{
  return side != meta->live && side != meta->rebuilt;
}

/* The schema that the store has. Returns ERR_STORE_CORRUPT with the remedy when it is newer than this version's. */
err_t meta_get_schema(struct env *env, MDB_txn *txn, MDB_dbi table, uint64_t *out);
err_t meta_put_schema(struct env *env, MDB_txn *txn, MDB_dbi table);

/* Read and check. Returns ERR_STORE_CORRUPT with the remedy. */
err_t meta_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out);
err_t meta_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct meta *meta);

/* Numbers and texts. A text is a copy to be freed with mem_free(), NULL where there is none; putting NULL deletes. */
err_t meta_get_number(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t *out);
err_t meta_get_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, char **out);
err_t meta_put_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, const char *text);

#endif
