/* SPDX-License-Identifier: Apache-2.0 */
/* The store: items and the Kafka positions that they reflect, in one LMDB environment, changed in one transaction.
 *
 * After any crash the store holds a prefix of the log: exactly the changes below its positions. It runs with
 * MDB_NOMETASYNC: a power cut may lose the newest transactions, which the log then replays, but never tears one; a
 * killed process loses nothing. It never uses MDB_WRITEMAP.
 *
 * Two catalogues. The live one is what the daemon serves. A rebuild fills a second one beside it, and one transaction
 * makes that the live one. The catalogue that follows the log, "the current one" below, is the one being rebuilt where
 * there is one, else the live one.
 *
 * One key in several partitions. A topic that grew, or producers that hash differently, put records of one key into
 * several partitions, and which of them is read first is a race. The store has a state of the key for each partition:
 * what that partition's records make of it, in order of their offsets, whatever their timestamps. The item is the state
 * whose newest record has the largest timestamp; ties go to the higher partition. Where that state is a tombstone,
 * there is no item. States never merge. The others are kept aside, tombstones too, so that every order of reading
 * gives the same items. A tombstone is forgotten STORE_TOMBSTONE_MS after it was applied, if its key has no parts in
 * any partition.
 *
 * A full disk. ERR_STORE_FULL is a failed write: nothing of it is there, all that was committed is, reading goes on,
 * and the same call may be made again later.
 *
 * One process opens a store at a time (a lock on the directory), and does not fork while it has it; a second one is
 * told so. Tools that read (mdb_stat, mdb_copy) may run beside it.
 *
 * data.mdb is a sparse file as long as its map; what it takes on the disk is store_stats()'s used_bytes.
 *
 * Tables, of each catalogue: `items` slot -> record (dense slots, big-endian, the last record moves into the hole of a
 * deleted one), `keys` key -> slot, `aside` key and partition -> record, `positions` partition -> position record; and
 * one `meta` name -> value. Each value carries a check sum, but the slots in `keys`, which are checked against the
 * records.
 *
 * Thread: all calls from one thread (the catalogue thread), but store_stats() from any.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/item.h"
#include "base/region.h"

struct store;

/* How long tombstones are remembered: 7 days, 7 times Kafka's default of delete.retention.ms. */
#define STORE_TOMBSTONE_MS (INT64_C(7) * 24 * 3600 * 1000)

/* Where the store stands in a partition. The last applied record is kept with it: a topic that was deleted and created
 * again has another record at that offset. */
struct store_position {
  struct position at;        /* at.next: the first offset not yet applied */
  int64_t last_offset;       /* offset of the last applied record, -1 if there is none */
  uint64_t last_digest;      /* digest of that record, computed by the caller */
  int64_t last_timestamp_ms; /* timestamp of that record */
  int64_t committed_unix_ms; /* when store_apply() last committed a position of this partition; set by the store. 0: the
                              * row was written by a version that kept no time */
};

/* The log that the store reflects. Texts are owned by the caller on put, by the store on get (valid until the next call
 * that writes a source, or begins, ends or forgets something). */
struct store_source {
  const char *cluster_id;
  const char *topic;
};

/* Open or create the store in a directory, which is created where it is missing (its parent must exist). An existing
 * store of this version is opened without writing, so on a full disk, too.
 *
 * Returns ERR_OK; ERR_STORE_IN_USE when another process has it; ERR_STORE_CORRUPT when the schema version or a table is
 * not ours or not readable; ERR_STORE_FULL; ERR_STORE for the rest (permissions), each with the path and the remedy.
 */
err_t store_open(const char *path, struct store **out);
void store_close(struct store **s);

/* What became of a change. */
enum store_effect {
  STORE_APPLIED, /* the catalogue changed: store_effects.changes has one change for it */
  STORE_SKIPPED, /* nothing to do: it was applied before, or deletes what is absent */
  STORE_ASIDE,   /* kept aside: another partition has a newer record of the key */
  STORE_REFUSED, /* the catalogue is full: see store_set_limit() */
  STORE_UNFIT,   /* with what is stored, the item would be larger than a record can be: the change is left out */
};

/* What a batch did. All arrays are the store's, valid until its next store_apply(); what the changes point to, as long
 * as what the caller gave, too. */
struct store_effects {
  const enum store_effect *kinds; /* [n], one for each change given */
  struct item_change *changes;    /* [n_changes], for the engine to apply in this order. Most are those given; where
                                   * another partition's state takes over, it is a whole item, or a delete */
  size_t n_changes;
  size_t n_refused;
  size_t n_unfit;
};

/* Apply changes and positions to the current catalogue in one transaction and commit it. Changes are applied in order;
 * within a batch the later change of a key sees the earlier one. A change with parts replaces those parts and keeps the
 * others of its partition, unless is_whole. A change whose offset is not above the last one of its key and partition
 * is skipped. Offsets compare within one log only: see store_forget_log().
 *
 * changes    left as they are
 * positions  stored with the time of the commit. One below the stored one of its partition is passed over, as is one of
 *            a partition with a refused change. Passing the same ones again renews their time
 * effects    may be NULL
 *
 * The map is grown between transactions; when it is full in the middle, the batch is redone after growing.
 *
 * Returns ERR_OK when it is committed. Otherwise nothing of the batch is: ERR_STORE_FULL when the disk is full;
 * ERR_STORE_CORRUPT with key and slot when a record that the batch needs is damaged; ERR_ITEM when a key has an
 * impossible size; ERR_STORE for the rest, with LMDB's words and the path.
 */
err_t store_apply(struct store *s, const struct item_change *changes, size_t n, const struct store_position *positions,
                  size_t n_positions, struct store_effects *effects);

/* Refuse a put that would make the current catalogue larger than this: STORE_REFUSED, and the rest of the batch goes
 * on. Nothing is lost: the position of a partition with a refused change stands still, and later puts of that key in
 * that partition are refused as well, so that none overtakes, until store_retry_refused(). To try again, call that and
 * read those partitions anew from store_positions(); what was applied already is skipped. A store that is opened with
 * more items keeps them. At first there is no limit. Nothing is written. */
void store_set_limit(struct store *s, uint64_t max_items);

/* Is a partition standing still since a change of it was refused? */
bool store_is_full(const struct store *s);

/* Forget what was refused: the caller reads those partitions from store_positions() on. */
void store_retry_refused(struct store *s);

/* Tell how many partitions the log has. With one, a key has one state at most, and no tombstones are remembered but
 * those at or above the position stored with them. Before it is told, the store takes it that there are several.
 * Nothing is written. */
void store_set_log_partitions(struct store *s, size_t n);

/* Positions of the current catalogue, in order of partition. The array belongs to the store and is valid until the next
 * store_apply(), or until something is begun, ended or forgotten. */
const struct store_position *store_positions(const struct store *s, size_t *n);

/* The source of the current catalogue; false when none was put yet. Putting the same one again writes nothing. */
bool store_source_get(const struct store *s, struct store_source *out);
err_t store_source_put(struct store *s, const struct store_source *source);

/* The source of the live catalogue, which is another one during a rebuild: to tell when the former log is back. */
bool store_live_source_get(const struct store *s, struct store_source *out);

/* Visit every item of the live catalogue in slot order, whole (is_whole set): for filling the arenas. Verifies each
 * check sum. `visit` gets changes in chunks of up to `chunk`, valid during the call; its error ends the visit and is
 * returned.
 *
 * The visitor must not call the store. Uses short read transactions.
 *
 * Returns ERR_STORE_CORRUPT with the key and slot of a damaged record, or when, all items seen, `keys` does not agree
 * with `items`: so what the visitor got is to be trusted only once store_scan() has returned ERR_OK.
 */
typedef err_code_t (*store_visit)(void *context, struct item_change *changes, size_t n);
err_t store_scan(struct store *s, size_t chunk, store_visit visit, void *context);

/* Begin an empty catalogue beside the live one, without positions and source; what a former rebuild had gathered is
 * dropped. From then on it is the current one, over restarts too. */
err_t store_begin_rebuild(struct store *s);
bool store_is_rebuilding(const struct store *s);

/* The number of the newest rebuild, 0 before the first: rises with each begin, survives restarts. */
uint64_t store_rebuild_number(const struct store *s);

/* Make the rebuilt catalogue the live one, in one transaction. The former one's tables are emptied bit by bit, by
 * store_apply() and store_tidy(). Only during a rebuild. */
err_t store_finish_rebuild(struct store *s);

/* Drop the rebuilt catalogue and go on with the live one, from its positions. Only during a rebuild. */
err_t store_abandon_rebuild(struct store *s);

/* Forget positions and source of the current catalogue, but keep its items: for a log that cannot be gone on with, and
 * whose end is no reason to delete. Records of the next log apply on top of the items, whatever their offsets, and
 * keep the parts that they do not name. What was kept aside is forgotten. */
err_t store_forget_log(struct store *s);

/* Free some of what dropped catalogues take: at most `max` rows, in one transaction. store_apply() does so a little,
 * too; this is for quiet times. */
err_t store_tidy(struct store *s, size_t max, bool *is_done);

struct store_stats {
  uint64_t n_items;         /* of the live catalogue */
  uint64_t n_rebuilt_items; /* of the one being rebuilt, 0 when there is none */
  uint64_t n_aside;         /* states kept aside in the current catalogue, remembered tombstones included */
  uint64_t map_bytes;       /* address space */
  uint64_t used_bytes;      /* of the map */
};
void store_stats(const struct store *s, struct store_stats *out);

#endif
