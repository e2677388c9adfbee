/* SPDX-License-Identifier: Apache-2.0 */
/* The open store, and the functions that its files share. Only the store's files and its tests include it. */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include "store/keys/aside.h"
#include "store/keys/refused.h"
#include "store/keys/slots.h"
#include "store/lmdb/env.h"
#include "store/lmdb/meta.h"
#include "store/lmdb/positions.h"
#include "store/lmdb/tables.h"
#include "store/record/attribute_ids.h"
#include "store/store.h"

#include <stdatomic.h>

/* Size of a new map. It costs address space and a sparse file, not memory or disk. */
enum { STORE_MAP_BYTES = 1 << 30 };

/* One catalogue, as the newest committed transaction left it. */
struct side {
  struct tables tables;
  struct positions positions;
  char *cluster_id; /* NULL: the catalogue has no source yet */
  char *topic;
};

/* Progress of the search for tombstones to forget: see store_tombstones.c. */
struct tombstone_walk {
  uint8_t from[ASIDE_KEY_MAX + 1]; /* the walk continues at the first row key that is not below this */
  size_t from_bytes;
  bool is_walking;
  int64_t oldest_unix_ms; /* time of the oldest tombstone that this round has kept so far */
  int64_t due_unix_ms;    /* start of the next round */
};

struct store {
  struct env *env;
  MDB_dbi meta_table;
  struct meta meta;
  struct side sides[TABLES_SIDES];
  bool has_leftovers; /* dropped catalogues may still have rows */
  int64_t (*clock_unix_ms)(void);

  struct attribute_ids attribute_ids; /* of the configured attributes */
  uint64_t max_items;
  size_t n_log_partitions;  /* 0: not set */
  struct positions refused; /* partitions that a refused put holds back; at.next is its offset */
  struct refused_keys refused_keys;
  struct tombstone_walk walk;

  struct {
    struct positions positions;
    struct positions refused;
  } draft;               /* what the transaction being written makes of `positions` and `refused` */
  struct region scratch; /* lives for one change */
  struct region bulk;    /* lives for one batch */

  struct {
    enum store_effect *kinds; /* [kinds_capacity] */
    size_t kinds_capacity;
    struct item_change *changes; /* [changes_capacity] */
    size_t changes_capacity;
    size_t n_changes;
    size_t n_refused;
    size_t n_unfit;
    struct region region; /* decoded items, where another partition's state becomes the item */
  } effects;              /* of the newest batch: see struct store_effects */

  struct {
    _Atomic uint64_t n_items;
    _Atomic uint64_t n_rebuilt_items;
    _Atomic uint64_t n_aside;
    _Atomic uint64_t map_bytes;
    _Atomic uint64_t used_bytes;
  } stats;
};

/* Open a store as store_open() does, with a given size of a new map. Tests use small maps, which fill up soon. */
err_t store_open_sized(const char *path, size_t map_bytes, struct store **out);

/* Open an existing store that no process has open, and check all of its pages. Only calls that read are allowed: see
 * env_open_to_read(). Returns the errors of store_open(); ERR_STORE if a daemon has made no tables in it yet. */
err_t store_open_to_read(const char *path, struct store **out);

/* Return the current catalogue: the one that follows the log. */
static inline struct side *store_current(struct store *s)
{
  return &s->sides[meta_current(&s->meta)];
}

/* ---- store_txn.c: transactions ---- */

/* Return the slots of a side for use within `txn`, as the newest committed transaction left them. */
struct slots store_slots(struct store *s, MDB_txn *txn, size_t side);

/* Run `body` in a write transaction and commit it, as env_write() does. `*meta`, written by body, then becomes s->meta.
 */
err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta);

/* Reopen the environment after a failure that LMDB does not survive. The copies in memory stay valid, because the
 * failed transaction changed nothing. Thread: the one that writes. */
err_t store_ensure_open(struct store *s);

/* Run `body` in a read transaction, as env_read() does. Thread: the one that writes. */
err_t store_read(struct store *s, env_body body, void *context);

/* Open the tables of an existing store. It has the type of an env_body; `context` is a struct store. */
err_code_t store_open_sides(void *context, MDB_txn *txn);

/* Publish the sizes of the newest committed state for store_stats(). */
void store_publish_stats(struct store *s);

/* ---- store_source.c: the log that a catalogue follows ---- */

/* Begin with the log of the current catalogue: there are no refused puts, and the walk over its tombstones begins. Call
 * it when another catalogue has become the current one, or when its log has changed. */
void store_begin_log(struct store *s);

/* Load positions and source of a side. */
err_t store_load_side(struct store *s, MDB_txn *txn, size_t side);

/* Delete positions and source of a side from the tables. */
err_t store_forget_side(struct store *s, MDB_txn *txn, size_t side);

/* Delete positions and source of a side from memory. */
void store_clear_side(struct side *side);

/* ---- store_tombstones.c, store_leftovers.c: work that is done a little with each batch ---- */

/* Look at the next `max` rows of table `aside`, and forget the tombstones that are old enough. */
err_t store_walk_tombstones(const struct slots *slots, const struct aside *aside, struct tombstone_walk *walk,
                            int64_t now_unix_ms, size_t max);

/* Note that a tombstone was stored. A round of the walk begins when it is old enough. */
void store_note_tombstone(struct tombstone_walk *walk, int64_t now_unix_ms);

/* Free up to `max` rows of dropped catalogues.
 *
 * is_done  no rows are left to free
 */
err_t store_free_leftovers(struct store *s, MDB_txn *txn, size_t max, bool *is_done);

#endif
