/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a large batch. They are sorted once; then table `keys` is read in its own order before the batch is
 * applied, and written in that order afterwards. So each of its pages is found and changed once, where single look-ups
 * in random order would search the tree for each key. In between, the slots of the keys are in memory.
 */
#ifndef STORE_BULK_KEYS_H
#define STORE_BULK_KEYS_H

#include "base/item.h"
#include "base/region.h"
#include "store/lmdb/tables.h"

/* Batches from this size on are worth the sort. */
enum { BULK_KEYS_FROM = 32 };

#define BULK_KEYS_NONE UINT64_MAX

/* A key of the batch. */
struct bulk_key {
  struct span key;
  uint64_t slot; /* BULK_KEYS_NONE: no item has the key */
  bool is_new;   /* table `keys` does not have it yet */
};

struct bulk_keys {
  struct bulk_key *keys; /* [n], sorted, each once */
  size_t n;
  uint32_t *of_change; /* [changes]: the key of each change */
  size_t change;       /* the change that is being applied; set by the caller */
};

/* Read the slot in a row of table `keys`. Returns ERR_STORE_CORRUPT, with the key. */
err_t bulk_keys_read_row(const struct env *env, struct span key, MDB_val row, uint64_t *slot);

/* Sort the keys of a batch and look them up. Everything lives in the region; the keys' bytes are borrowed from the
 * changes. Returns ERR_ITEM, ERR_STORE_CORRUPT, ERR_STORE or ERR_MEMORY. */
err_t bulk_keys_read(struct env *env, MDB_txn *txn, MDB_dbi table, const struct item_change *changes, size_t n,
                     struct region *region, struct bulk_keys *out);

/* Put the new keys into the table. */
err_t bulk_keys_write(struct env *env, MDB_txn *txn, MDB_dbi table, struct bulk_keys *keys);

/* Return the key of the change that is being applied. */
static inline struct bulk_key *bulk_keys_current(const struct bulk_keys *b)
{
  return &b->keys[b->of_change[b->change]];
}

#endif
