/* SPDX-License-Identifier: Apache-2.0 */
/* The store: items and their Kafka positions in one LMDB environment, changed together in one transaction.
 *
 * Crashes. After any crash the store holds a prefix of the log: exactly the changes below its positions. It runs with
 * MDB_NOMETASYNC: a power cut may lose the newest transactions, and they are replayed from the log, but it never tears
 * one. A killed process loses nothing. The store never uses MDB_WRITEMAP.
 *
 * Two catalogues. The daemon serves the live one. A rebuild reads the log into a second one beside it, and one
 * transaction then makes the second one live. "The current catalogue" below is the one that follows the log: the one
 * being rebuilt during a rebuild, else the live one.
 *
 * One key in several partitions. If a topic grew, or its producers hash keys differently, several partitions have
 * records of one key, and which is read first is a race. So the store keeps a state of the key for each partition: the
 * result of that partition's records in order of offset, whatever their timestamps. The item is the state whose newest
 * record has the largest timestamp; on a tie, the higher partition wins. If that state is a tombstone, there is no
 * item. States never merge. The other states, tombstones included, are kept aside, so every reading order gives the
 * same items. A tombstone is forgotten STORE_TOMBSTONE_MS after it was applied, unless its key has parts in some
 * partition.
 *
 * A full disk. ERR_STORE_FULL is a failed write. Nothing of that write is stored, all committed data stays, reading
 * goes on, and the caller may repeat the call later.
 *
 * One process opens a store at a time; a lock on the directory makes a second one fail with an error. The process must
 * not fork while the store is open. Tools that read (mdb_stat, mdb_copy) may run beside it.
 *
 * data.mdb is a sparse file as large as its map. store_stats()'s used_bytes tells how much disk it takes.
 *
 * Each catalogue has four tables: `items` slot -> record (slots are dense and big-endian; the last record moves into
 * the slot of a deleted one), `keys` key -> slot, `aside` key and partition -> record, `positions` partition ->
 * position. The store has one more: `meta` name -> value. Each value carries a checksum, except the slots in `keys`,
 * which are checked against the records.
 *
 * Thread: one thread at a time makes all calls; store_stats(), store_read_item() and store_scan_next() may be called
 * from any thread.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <pthread.h>

#include "base/attributes.h"
#include "base/err.h"
#include "base/item.h"
#include "base/region.h"
#include "store/store_effect.h"
#include "store/store_position.h"

struct store;

/* LMDB's limit on the size of a key. */
enum { STORE_LMDB_KEY_MAX = 511 };

/* How long tombstones are remembered: 7 days, 7 times Kafka's default of delete.retention.ms. */
#define STORE_TOMBSTONE_MS (INT64_C(7) * 24 * 3600 * 1000)

/* The log that a catalogue follows. The caller owns the texts that it puts. Texts that the store returns are valid
 * until the next store_source_put(), rebuild call or store_forget_log(). */
struct store_source {
  const char *cluster_id;
  const char *topic;
};

/* Open the store in a directory, or create it. The directory is created if it is missing; its parent must exist.
 * Opening an existing store of this version writes nothing, so it also works on a full disk.
 *
 * Returns ERR_OK; ERR_STORE_IN_USE when another process has it open; ERR_STORE_CORRUPT when the schema version or a
 * table is unknown or unreadable; ERR_STORE_FULL; ERR_STORE for other failures, such as permissions. Each message has
 * the path and the remedy.
 */
err_t store_open(const char *path, struct store **out);
void store_close(struct store **s);

/* Say which attributes the records keep. Call it once, before anything is read or applied; without it there are none.
 * An attribute that was not configured at the last call starts absent in every item. The values of one that is no
 * longer configured are never seen again. Writes nothing if the attributes are those of the last call.
 *
 * attributes  copied
 *
 * Returns ERR_CONFIG if the type of an attribute has changed, with both types and the remedies; ERR_STORE_CORRUPT;
 * ERR_STORE_FULL; ERR_STORE; ERR_MEMORY. On error the store keeps the former attributes.
 */
err_t store_set_attributes(struct store *s, const struct attributes *attributes);

/* Say which shard of the catalogue the store keeps. Call it once, before anything is read or applied. The store
 * remembers it. Writes nothing if it is that of the last call.
 *
 * n_shards  0: the store keeps the whole catalogue
 *
 * Returns ERR_CONFIG if the store has another shard, with both and the remedies; ERR_STORE_CORRUPT; ERR_STORE_FULL;
 * ERR_STORE; ERR_MEMORY.
 */
err_t store_set_shard(struct store *s, uint64_t index, uint64_t n_shards);

/* The effects of a batch. The store owns the arrays; they are valid until its next store_apply(). The changes may point
 * into memory that the caller passed to store_apply(). */
struct store_effects {
  const enum store_effect *kinds; /* [n], one for each change passed in */
  struct item_change *changes;    /* [n_changes], to be applied by the engine in this order. Most are the changes passed
                                   * in. If another partition's state becomes the item, it is that whole item, or a
                                   * delete */
  size_t n_changes;
  size_t n_refused;
  size_t n_unfit;
};

/* Apply changes and positions to the current catalogue in one transaction, and commit it. Changes are applied in order:
 * a later change of a key sees the earlier ones of the batch. A change replaces the parts and attributes that it names,
 * and keeps the others of its partition, unless it is_whole. A null attribute is removed. Values of attributes must be
 * in their kept form (base/value.h). A change is skipped if its offset is not above the last one of its
 * key and partition. Offsets are compared within one log only: see store_forget_log().
 *
 * A delete that is_sweep takes the place of the item's newest record: it has the same partition, offset and timestamp.
 * So it changes nothing for records that are read later, or read again. The item's record must lie below the stored
 * position of its partition.
 *
 * changes    not modified
 * positions  a position is ignored if it is below the stored one of its partition. If a change of its partition was
 *            refused, only its complete_unix_ms is stored
 * effects    may be NULL
 *
 * The map is grown between transactions. If it fills up during the batch, it is grown and the batch is applied again.
 *
 * Returns ERR_OK when the batch is committed. Otherwise nothing of it is stored: ERR_STORE_FULL when the disk is full;
 * ERR_STORE_CORRUPT with key and slot when a record that the batch needs is damaged; ERR_ITEM when a key has an
 * impossible size; ERR_STORE for other failures, with LMDB's message and the path.
 */
err_t store_apply(struct store *s, const struct item_change *changes, size_t n, const struct store_position *positions,
                  size_t n_positions, struct store_effects *effects);

/* Set the limit of the current catalogue's size; there is none at first. A put that would exceed it is STORE_REFUSED,
 * and the rest of the batch is applied. A refused put is not lost: the position of its partition stops before it, and
 * later puts of that key in that partition are refused too, so that none overtakes it. To retry, call
 * store_retry_refused() and read those partitions again from store_positions(); changes that were already applied are
 * skipped. A store that is opened with more items than the limit keeps them. Writes nothing. */
void store_set_limit(struct store *s, uint64_t max_items);

/* Does a refused put hold back the position of some partition? */
bool store_has_refused(const struct store *s);

/* Forget the refused puts. The caller then reads those partitions again from store_positions(). */
void store_retry_refused(struct store *s);

/* Tell the store how many partitions the log has; it assumes several until then. With one, a key is never in two
 * partitions, so tombstones are kept only for records that may be read again. Writes nothing. */
void store_set_log_partitions(struct store *s, size_t n);

/* Return the positions of the current catalogue, in order of partition. The store owns the array; it is valid until the
 * next store_apply(), rebuild call or store_forget_log(). */
const struct store_position *store_positions(const struct store *s, size_t *n);

/* Return the one of a partition; NULL: there is none. Valid as long as store_positions(). */
const struct store_position *store_find_position(const struct store *s, int32_t partition);

/* Get or put the source of the current catalogue. Get returns false if none was put yet. Putting the same source again
 * writes nothing. */
bool store_source_get(const struct store *s, struct store_source *out);
err_t store_source_put(struct store *s, const struct store_source *source);

/* Get the source of the live catalogue, the one that is served. During a rebuild, the current catalogue is the one
 * being built, and may have another source. The caller compares the live source with the topic's, to notice when the
 * live catalogue's log is back. */
bool store_live_source_get(const struct store *s, struct store_source *out);

/* Read an item of the live catalogue, as the newest committed transaction left it.
 *
 * max_bytes  of its record
 * region     the item lives here
 *
 * Returns ERR_TOO_LARGE; ERR_STORE_CORRUPT with key and slot when its record is damaged; ERR_STORE; ERR_MEMORY. Thread:
 * any. Blocks: while the store's map grows. */
err_t store_read_item(struct store *s, struct span key, size_t max_bytes, struct region *region, bool *is_found,
                      struct item_change *out);

/* A scan of all items of the live catalogue, to fill the arenas. One thread begins and ends it; in between every thread
 * takes chunks until there are none. Items are whole (is_whole is set). Verifies every checksum. Uses short read
 * transactions. The store must not be written meanwhile. The fields are private. */
struct store_scan {
  struct store *store;
  size_t chunk;
  uint64_t n_items;
  _Atomic uint64_t next;      /* the next slot to read */
  _Atomic uint64_t items_sum; /* sum of digest(key, slot) over the records read so far */
  pthread_mutex_t keys_lock;  /* for the fields below: how far table `keys` has been read */
  uint64_t keys_sum;          /* the same sum over its rows */
  uint64_t n_keys;            /* rows that were read */
  uint8_t key[STORE_LMDB_KEY_MAX];
  size_t key_bytes; /* 0: from the first row */
  bool has_read_keys;
};

/* chunk  maximum number of items that one call of store_scan_next() gives
 *
 * Returns the errors of store_open() if the store is reopened after a failed write. */
err_t store_scan_begin(struct store *s, size_t chunk, struct store_scan *out);

/* Take the next items: those of slots first..first+n-1, at most `chunk`; first is a multiple of it. n = 0: there are
 * none left. They live in `region`, which the caller resets. Returns ERR_STORE_CORRUPT with the key and slot of a
 * damaged record. Thread: any. */
err_t store_scan_next(struct store_scan *scan, struct region *region, uint64_t *first, struct item_change **changes,
                      size_t *n);

/* Verify the tables after the last item. Returns ERR_STORE_CORRUPT if `keys` does not agree with `items`; so the items
 * can be trusted only after this has returned ERR_OK. */
err_t store_scan_end(struct store_scan *scan);

/* Begin an empty catalogue beside the live one, without positions or source. It becomes the current one and stays so
 * over restarts. An unfinished rebuild is dropped. */
err_t store_begin_rebuild(struct store *s);
bool store_is_rebuilding(const struct store *s);

/* Return the number of the newest rebuild; 0 before the first. Each begin raises it. It survives restarts. */
uint64_t store_rebuild_number(const struct store *s);

/* Make the rebuilt catalogue the live one, in one transaction. store_apply() and store_tidy() then empty the tables of
 * the former one in small steps. Call only during a rebuild. */
err_t store_finish_rebuild(struct store *s);

/* Drop the rebuilt catalogue and continue with the live one from its positions. Call only during a rebuild. */
err_t store_abandon_rebuild(struct store *s);

/* Forget positions and source of the current catalogue, but keep its items. Use it if the log cannot be continued and
 * its loss must not delete items. Records of the next log apply on top of the items, whatever their offsets, and keep
 * the parts that they do not name. States kept aside are forgotten. */
err_t store_forget_log(struct store *s);

/* Free at most `max` rows of dropped catalogues, in one transaction. Call it in quiet times; store_apply() also frees
 * a few.
 *
 * is_done  no rows are left to free
 */
err_t store_tidy(struct store *s, size_t max, bool *is_done);

struct store_stats {
  uint64_t n_items;         /* of the live catalogue */
  uint64_t n_rebuilt_items; /* of the catalogue being rebuilt, 0 if there is none */
  uint64_t n_aside;         /* states kept aside in the current catalogue, including remembered tombstones */
  uint64_t map_bytes;       /* address space of the map */
  uint64_t used_bytes;      /* used part of the map */
};
void store_stats(const struct store *s, struct store_stats *out);

#endif
