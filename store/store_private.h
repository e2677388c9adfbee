/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include "store/aside.h"
#include "store/env.h"
#include "store/meta.h"
#include "store/positions.h"
#include "store/refused.h"
#include "store/slots.h"
#include "store/store.h"
#include "store/tables.h"

#include <stdatomic.h>

/* A new map: address space and a sparse file, not memory or disk. */
enum { STORE_MAP_BYTES = 1 << 30 };

/* One catalogue, as of the newest committed transaction. */
struct side {
  struct tables tables;
  struct positions positions;
  char *cluster_id; /* NULL: no source yet */
  char *topic;
};

/* Where looking for tombstones to forget stands: see store_tombstones.c. */
struct tombstone_walk {
  uint8_t from[ASIDE_KEY_MAX + 1];
  size_t from_bytes;
  bool is_walking;
  int64_t oldest_unix_ms; /* of those that stay, as far as the round has come */
  int64_t due_unix_ms;    /* of the next round */
};

struct store {
  struct env *env;
  MDB_dbi meta_table;
  struct meta meta;
  struct side sides[TABLES_SIDES];
  bool has_leftovers; /* rows of dropped catalogues, perhaps */
  int64_t (*clock_unix_ms)(void);

  uint64_t max_items;
  size_t n_log_partitions;  /* 0: not told */
  struct positions refused; /* partitions that stand still: `next` is their first refused offset */
  struct refused_keys refused_keys;
  struct tombstone_walk walk;

  struct {
    struct positions positions;
    struct positions refused;
  } draft;               /* of the transaction that is being written */
  struct region scratch; /* lives for one change */
  struct region batch;   /* lives for one chunk of items that a visitor gets */

  struct {
    enum store_effect *kinds; /* [kinds_capacity] */
    size_t kinds_capacity;
    struct item_change *changes; /* [changes_capacity] */
    size_t changes_capacity;
    size_t n_changes;
    size_t n_refused;
    size_t n_unfit;
    struct region region; /* items that take over */
  } effects;              /* of the newest batch */

  struct {
    _Atomic uint64_t n_items;
    _Atomic uint64_t n_rebuilt_items;
    _Atomic uint64_t n_aside;
    _Atomic uint64_t map_bytes;
    _Atomic uint64_t used_bytes;
  } stats;
};

/* As store_open(), with the size of a new map: so that tests meet its end soon. */
err_t store_open_sized(const char *path, size_t map_bytes, struct store **out);

/* The catalogue that follows the log. */
static inline struct side *store_current(struct store *s)
{
  return &s->sides[meta_current(&s->meta)];
}

/* The slots of a side as the newest committed transaction left them, within `txn`. */
struct slots store_slots(struct store *s, MDB_txn *txn, size_t side);

/* Run `body` as env_write() does, then take over `*meta`, which body has written. */
err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta);
err_t store_read(struct store *s, env_body body, void *context);

/* Open the tables of an existing store. An env_body: `store` is a struct store. */
err_code_t store_open_sides(void *store, MDB_txn *txn);

/* Make the newest committed state visible to store_stats(). */
void store_publish_stats(struct store *s);

/* Another catalogue is the current one, or its log is another: forget what memory has of the former. */
void store_forget_progress(struct store *s);

/* Names of a side's source in table `meta`. */
enum { STORE_TEXT_NAME_BYTES = 32 };
void store_text_name(const char *stem, size_t side, char out[STORE_TEXT_NAME_BYTES]);

/* Within a transaction: forget positions and source of a side. In memory, store_clear_side() does the same. */
err_t store_forget_side(struct store *s, MDB_txn *txn, size_t side);
void store_clear_side(struct side *side);

/* Look at some of the remembered tombstones, at most `max`, and forget those whose time has come. */
err_t store_walk_tombstones(const struct slots *slots, const struct aside *aside, struct tombstone_walk *walk,
                            int64_t now_unix_ms, size_t max);

/* A tombstone was stored. */
void store_note_tombstone(struct tombstone_walk *walk, int64_t now_unix_ms);

/* Free up to `max` rows of dropped catalogues; `*is_done`: none is left. */
err_t store_free_leftovers(struct store *s, MDB_txn *txn, size_t max, bool *is_done);

/* Turn a store of schema 1 into one of this schema, in one transaction. */
err_code_t store_convert_schema_1(void *store, MDB_txn *txn);

#endif
