/* The store: items and the Kafka positions that they reflect, in one LMDB environment, changed in one transaction.
 *
 * After any crash the store holds a prefix of the log: exactly the changes below its positions. It runs with
 * MDB_NOMETASYNC: a power cut may lose the newest transactions, which the log then replays, but never tears one; a
 * killed process loses nothing. It never uses MDB_WRITEMAP.
 *
 * One process opens a store at a time (a lock on the directory), and does not fork while it has it; a second one is
 * told so. Tools that read (mdb_stat, mdb_copy) may run beside it.
 *
 * data.mdb is a sparse file as long as its map; what it takes on the disk is store_stats()'s used_bytes.
 *
 * Tables: `items` slot -> record (dense slots, big-endian, the last record moves into the hole of a deleted one),
 * `keys` key -> slot, `positions` partition -> position record, `meta` name -> value. Each value carries a check sum,
 * but the slots in `keys`, which are checked against the records.
 *
 * Thread: all calls from one thread (the catalogue thread), but store_stats() from any.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/item.h"
#include "base/region.h"

struct store;

/* What identifies the last record applied from a partition: tells a topic that goes on from one that was made anew. */
struct store_position {
  int32_t partition;
  int64_t next;         /* first offset not yet applied */
  int64_t last_offset;  /* offset of the last record applied, -1 when there is none */
  uint64_t last_digest; /* digest of that record, as the caller computes it */
  int64_t last_timestamp_ms;
};

/* The log that the store reflects. Texts are owned by the caller on put, by the store on get (valid until the next
 * put or generation change). */
struct store_source {
  const char *cluster_id;
  const char *topic;
};

/* Open or create the store in a directory, which is created where it is missing (its parent must exist).
 *
 * Returns ERR_OK; ERR_STORE_IN_USE when another process has it; ERR_STORE_CORRUPT when the schema version or a table is
 * not ours or not readable; ERR_STORE for the rest (permissions, disk), each with the path and the remedy.
 */
err_t store_open(const char *path, struct store **out);
void store_close(struct store **s);

/* Apply changes and positions in one transaction and commit it. Changes are applied in order; within a batch the later
 * change of a key sees the earlier one. A change with parts replaces those parts and keeps the others, unless is_whole
 * or unless the stored record is of an older generation: then the stored parts are forgotten, and is_whole is set in
 * the change, for the engine to do the same. A change whose partition is the one that the stored record came from, and
 * whose offset is not above the stored one, is skipped, as is a delete of what is absent; `is_skipped` (array [n], may
 * be NULL) says which.
 * Offsets are compared with records of the same generation only. A position below the stored one of its partition is
 * passed over: within a generation, positions do not go back.
 *
 * The map is grown between transactions; when it is full in the middle, the batch is redone after growing.
 *
 * Returns ERR_OK when it is committed. Otherwise nothing of the batch is: ERR_STORE with LMDB's words and the path (a
 * full disk: the store stays usable, and the batch may be applied again); ERR_STORE_CORRUPT with key and slot when a
 * record that the batch needs is damaged; ERR_ITEM when a key or an item has an impossible size.
 */
err_t store_apply(struct store *s, struct item_change *changes, size_t n, const struct store_position *positions,
                  size_t n_positions, bool *is_skipped);

/* Positions stored, in order of partition. The array belongs to the store and is valid until the next store_apply() or
 * generation change. */
const struct store_position *store_positions(const struct store *s, size_t *n);

/* The source; false when none was put yet (a new store). */
bool store_source_get(const struct store *s, struct store_source *out);
err_t store_source_put(struct store *s, const struct store_source *source);

/* Visit every item in slot order, whole (is_whole set): for filling the arenas at start. Verifies each check sum.
 * `visit` gets changes in chunks of up to `chunk`, valid during the call; its error ends the visit and is returned.
 *
 * The visitor must not call the store. Uses short read transactions.
 *
 * Returns ERR_STORE_CORRUPT with the key and slot of a damaged record, or when, all items seen, `keys` does not agree
 * with `items`: so what the visitor got is to be trusted only once store_scan() has returned ERR_OK.
 */
typedef err_code_t (*store_visit)(void *context, struct item_change *changes, size_t n);
err_t store_scan(struct store *s, size_t chunk, store_visit visit, void *context);

/* Rebuild from the log (mark and sweep): begin a new generation, which forgets all positions and the source but keeps
 * items; records written from now on are marked with it. store_sweep() deletes what the new generation has not
 * written: it looks at up to `max` items a call, in one transaction, tells the keys of those that it deleted to `visit`
 * (as deletes, after the commit; not called when there are none), and sets `*is_done` when none is left and the rebuild
 * is over. Batches may be applied between the calls. A rebuild that a crash cut short goes on after reopening:
 * store_is_rebuilding(). */
err_t store_begin_rebuild(struct store *s);
bool store_is_rebuilding(const struct store *s);
err_t store_sweep(struct store *s, size_t max, store_visit visit, void *context, bool *is_done);

struct store_stats {
  uint64_t n_items;
  uint64_t map_bytes;  /* address space */
  uint64_t used_bytes; /* of the map */
};
void store_stats(const struct store *s, struct store_stats *out);

#endif
