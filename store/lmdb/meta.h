/* SPDX-License-Identifier: Apache-2.0 */
/* The table `meta`: facts about the store as a whole. Each is a sealed value under its name. */
#ifndef STORE_META_H
#define STORE_META_H

#include "store/lmdb/tables.h"

/* Version of the stored format. Raise it when an older daemon could misread what this one writes, or this one what an
 * older one wrote. */
enum { META_SCHEMA = 3 };

#define META_NO_SIDE UINT64_MAX

struct meta_side {
  uint64_t log_number; /* of the log that it is read from; records of a lower number come from a forgotten log */
  uint64_t n_items;
};

/* The state of the store, stored in this form. */
struct meta {
  uint64_t live;       /* a side */
  uint64_t rebuilt;    /* the side being rebuilt, or META_NO_SIDE */
  uint64_t n_rebuilds; /* rebuilds begun since the store was created */
  uint64_t log_number; /* the highest in use: each further log gets the next one */
  struct meta_side sides[TABLES_SIDES];
};

/* Return the side that follows the log. */
static inline size_t meta_current(const struct meta *meta)
{
  return meta->rebuilt == META_NO_SIDE ? meta->live : meta->rebuilt;
}

/* Is the side neither live nor being rebuilt? Its rows are then freed. */
static inline bool meta_is_dropped(const struct meta *meta, size_t side)
{
  return side != meta->live && side != meta->rebuilt;
}

/* Put the version of a stored format; verify that it is this one. Another one is ERR_STORE_CORRUPT, with the remedy. */
err_t meta_put_schema(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t schema);
err_t meta_verify_schema(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, uint64_t schema);

/* Verify the checksum of every value. Returns ERR_STORE_CORRUPT with the name. */
err_t meta_check(struct env *env, MDB_txn *txn, MDB_dbi table);

/* Get or put the state of the store. Getting one that is missing or impossible is ERR_STORE_CORRUPT, with the remedy.
 */
err_t meta_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out);
err_t meta_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct meta *meta);

/* Get or put a text. It is a copy that the caller frees with mem_free(), or NULL if there is none. Putting
 * NULL deletes the text. */
err_t meta_get_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, char **out);
err_t meta_put_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, const char *text);

/* Get or put any bytes, at most META_VALUE_MAX. Those that are got are valid until the transaction writes or ends. */
enum { META_VALUE_MAX = 8192 };
err_t meta_get_bytes(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, bool *is_found, struct span *out);
err_t meta_put_bytes(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, struct span bytes);

#endif
