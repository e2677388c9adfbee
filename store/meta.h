/* The table `meta`: what is true of the store as a whole, each a sealed value under its name. */
#ifndef STORE_META_H
#define STORE_META_H

#include "store/tables.h"

/* Raised when an older daemon could misread what this one writes. */
enum { META_SCHEMA = 1 };

struct meta {
  uint64_t generation; /* of the log; records of an older one are left over from before the rebuild */
  uint64_t n_items;
  bool is_rebuilding;
};

/* Write the values of a new store. */
err_t meta_create(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out);

/* Read and check. Returns ERR_STORE_CORRUPT with the remedy, for a newer schema too. */
err_t meta_get(struct env *env, MDB_txn *txn, MDB_dbi table, struct meta *out);

/* Write what differs between `old` and `new`. */
err_t meta_put(struct env *env, MDB_txn *txn, MDB_dbi table, const struct meta *old, const struct meta *new);

/* Texts: `*out` is a copy to be freed with mem_free(), NULL where there is none; putting NULL deletes. */
err_t meta_get_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, char **out);
err_t meta_put_text(struct env *env, MDB_txn *txn, MDB_dbi table, const char *name, const char *text);

#endif
