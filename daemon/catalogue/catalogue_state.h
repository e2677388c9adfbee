/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the files of the catalogue thread share, and what each of them does. Private to catalogue*.c.
 *
 * Calls go down this list only:
 *
 *   catalogue.c                the thread: open, loop, close
 *   catalogue_recover.c        what to do after an error that can be waited out
 *   catalogue_upkeep.c         caught up, rebuilt, more partitions, room again
 *   catalogue_connect.c        start reading where the store stands
 *   catalogue_topic.c          the topic's partitions, and whether it continues the store
 *   catalogue_discontinuity.c  rebuild or stop when the topic does not continue the store
 *   catalogue_damage.c         partitions with damaged offsets: log, back off, read again
 *   catalogue_schemas.c        partitions that wait for the schema of their next record: pause, ask, read on
 *   catalogue_ahead.c          read the next batch while the store writes the last one
 *   catalogue_gather.c         read records into a batch
 *   catalogue_client.c         let the Kafka client stand back while nobody waits for the records
 *   catalogue_apply.c          write a batch to store and engine
 *   catalogue_first_fill.c     the first fill: records go to the store alone
 *   catalogue_load.c           load the store into the arenas
 *   catalogue_commit.c         positions for Kafka's tools
 *   catalogue_models.c         generations of models: read the control topic, and do what it asks for
 *   catalogue_sweep.c          delete items that have been expired for long
 *   catalogue_time.c           publish an epoch when an item expires
 *   catalogue_report_update.c  the report that /status shows
 *   catalogue_state.c          phase, stop flag, item count, watermark
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_STATE_H
#define DAEMON_CATALOGUE_CATALOGUE_STATE_H

#include "base/age_watch.h"
#include "base/stand_back.h"
#include "daemon/catalogue/catalogue.h"
#include "daemon/catalogue/catalogue_rebuild.h"
#include "daemon/catalogue/item_batch.h"
#include "daemon/health/pulse.h"
#include "daemon/models/models.h"
#include "daemon/topic/followed_topic.h"
#include "daemon/topic/letter_window.h"
#include "daemon/topic/topic_audit.h"

/* A broker that refuses us is asked again less often: a person has to act first. */
enum { CATALOGUE_POLL_ITEMS = 256, CATALOGUE_RETRY_MS = 500, CATALOGUE_REFUSED_MS = 2000 };

/* A batch of a first fill or a rebuild, one transaction of the store. It ends at the first of these limits. */
enum { CATALOGUE_BULK_ITEMS = 65536, CATALOGUE_BULK_BYTES = 64 << 20, CATALOGUE_BULK_MS = 500 };

/* A partition that cannot be read at some offset. */
struct damage {
  int32_t partition;
  int64_t next;     /* the partition's position; the damage is over when it moves past this */
  int64_t retry_ns; /* time of the next retry; INT64_MAX: a retry is under way */
  int backoff_ms;   /* delay before that retry */
};

/* All damages, at most one for each partition. */
struct damages {
  struct damage *items; /* [n] */
  size_t n;
  size_t capacity;
};

/* A consumer error that reports damage. */
struct damage_sighting {
  bool is_there; /* false: none was reported */
  int32_t partition;
  int64_t offset;
};

enum { SCHEMA_REASON_BYTES = 384 };

/* A partition whose next record has a schema that the registry has not told yet. It is not fetched meanwhile. */
struct schema_wait {
  int32_t partition;
  uint32_t id;      /* of the schema */
  int64_t since_ns; /* clock_boot_ns() */
  char reason[SCHEMA_REASON_BYTES];
};

/* All of them, at most one for each partition: catalogue_schemas.c. */
struct schema_waits {
  struct schema_wait *items; /* [n] */
  size_t n;
  size_t capacity;
  int64_t ask_until_ns; /* the registry may be asked until then: catalogue_begin_asking() */
};

/* A batch on its way into store and engine. */
struct batch_write {
  struct store *store;
  const struct item_batch *batch;
  struct store_position *positions; /* [n_positions], to be stored with the batch */
  struct position *watermark;       /* [n_positions], for the watermark */
  size_t n_positions;
  struct store_effects effects;
};

/* Since when tombstones may have been missed: catalogue_topic.c. */
struct catalogue_reading {
  bool has_resumed;               /* since the daemon's start */
  int64_t last_read_ns;           /* once it has resumed: time of the last read (clock_boot_ns) */
  int64_t tombstone_retention_ns; /* how long the topic keeps tombstones; 0: for ever, or unknown */
};

/* How records are read into a batch: catalogue_gather.c. */
struct catalogue_gather {
  struct item_format format; /* of the records */
  struct item_batch_rules rules;
  struct topic_record *records; /* [CATALOGUE_POLL_ITEMS], of one poll */
  bool newest_can_wait;         /* what the newest poll brought */
  bool has_logged_lost_letters;
};

/* The Kafka client that stands back: catalogue_client.c. All zeros: it is in front. */
struct catalogue_client {
  int64_t since_ns;       /* when it went back, or had last brought enough records; 0: it is in front */
  uint64_t n_records;     /* that it has brought since then */
  int64_t front_until_ns; /* it does not go back before this */
};

/* A batch that is stored while the next one is read: catalogue_ahead.c. */
struct catalogue_ahead {
  bool is_waiting;           /* catalogue.batch has been read, and is stored while the next one is read */
  struct item_batch storing; /* the batch before, while the store writes it */
};

/* A first fill, during which records go to the store alone: catalogue_first_fill.c begins it, catalogue_load.c ends it.
 */
struct catalogue_first_fill {
  bool is_under_way;
  int64_t begin_ns;
  int64_t say_due_ns; /* no log line about it before this */
  uint64_t n_records; /* how many there were to read when it began */
};

/* Items that found no room: catalogue_apply.c notes them, catalogue_upkeep.c reads them again. */
struct catalogue_room {
  bool has_refused;     /* the store refused items, and catalogue_enter_full() has not been called since */
  int64_t log_due_ns;   /* no further event catalogue_full before this */
  int64_t retry_due_ns; /* when waiting items are read again, however little room there is */
};

/* Stored parts that do not fit their models: catalogue_load.c counts them. */
struct catalogue_load {
  pthread_mutex_t lock; /* for n_unusable and batch.unknown_spaces: several threads load the store */
  uint64_t n_unusable;  /* since the newest load began */
};

/* What is looked after from time to time: catalogue_upkeep.c. */
struct catalogue_upkeep {
  int64_t refresh_due_ns;  /* next look for added partitions */
  int64_t tidy_due_ns;     /* no store_tidy() before this */
  int64_t log_ends_due_ns; /* next look at the ends of partitions */
};

/* The commits for Kafka's tools: catalogue_commit.c. */
struct catalogue_commit {
  uint64_t digest; /* of the positions that this consumer has begun to commit; 0: none */
  int64_t due_ns;
  int64_t again_ns; /* when positions that have not changed are committed again */
};

/* Deleting items that have been expired for long: catalogue_sweep.c. */
struct catalogue_sweep {
  int64_t due_ns;           /* not before this */
  int64_t asked_unix_ms;    /* when the brokers were asked for `asked_end` of each partition; 0: it was reached */
  int64_t read_all_unix_ms; /* all records that the brokers had at this time were applied */
};

/* Fields that one file owns, or that change together, are the structs above. Several files use the others. */
struct catalogue {
  struct catalogue_context with;
  struct followed_topic topic;
  struct topic_audit audit;
  struct catalogue_rebuild rebuild;
  struct letter_window letters;
  struct stand_back stand_back; /* for what no query waits for */
  struct models *models;        /* generations of models; NULL: there is no control topic */
  bool has_model_work;          /* models_step() has more to do at once */
  struct item_batch batch;      /* the newest one, and the counts of unknown spaces */
  struct region scratch;        /* positions of one batch */
  struct damages damages;
  struct schema_waits waits;
  struct age_watch ages;
  struct catalogue_reading reading;
  struct catalogue_gather gather;
  struct catalogue_client client;
  struct catalogue_ahead ahead;
  struct catalogue_first_fill first_fill;
  struct catalogue_room room;
  struct catalogue_load load;
  struct catalogue_upkeep upkeep;
  struct catalogue_commit commit;
  struct catalogue_sweep sweep;
  int64_t touch_due_ns; /* next store of positions without new records */
  int64_t time_due_ns;  /* no epoch is published just for the time before this */
  struct catalogue_report report;
  int64_t report_due_ns; /* next update of the report */
  bool must_stop;        /* by policy, the newest error ends the daemon */
  _Atomic int phase;
  _Atomic bool is_serving;
  _Atomic bool is_stopping;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

/* ---- catalogue_recover.c ---- */

/* Can the thread go on after this error? */
bool catalogue_is_recoverable(err_code_t err);

/* Wait until a recoverable error is over, and connect again. `err` must be the newest failure. Returns what
 * catalogue_connect() returns, or ERR_DISCONTINUITY by policy. */
err_t catalogue_recover(struct catalogue *c, err_code_t err);

/* If the certificates have changed, let another consumer take over where the store stands. */
err_t catalogue_renew(struct catalogue *c);

/* ---- catalogue_upkeep.c ---- */

/* Change the phase if the topic is read to its end; read added partitions; use new room. */
err_t catalogue_do_upkeep(struct catalogue *c);

/* ---- catalogue_connect.c ---- */

/* Wait for broker and topic, however long it takes, then start reading where the store stands.
 *
 * Returns ERR_STOPPING when the daemon stops while waiting. */
err_t catalogue_connect(struct catalogue *c);

/* ---- catalogue_topic.c: errors as catalogue_topic_resume(); blocks for a broker, up to some seconds ---- */

/* Set the position of every partition from the store, and write the topic's name and cluster to the store. Reads no
 * records: catalogue_topic_start_reading() begins that. If a wrong configuration has begun a rebuild and the topic is
 * now the served catalogue's own again, the rebuild is abandoned.
 *
 * Returns ERR_KAFKA_RETRY while broker or topic are away; ERR_CONFIG when the topic has fewer partitions than there are
 * shards; ERR_DISCONTINUITY when
 *   cluster, topic or number of partitions do not fit the store,
 *   a position is outside its partition, or
 *   the topic was not read for longer than it keeps tombstones.
 */
err_t catalogue_topic_resume(struct catalogue *c);

/* Start fetching all partitions that are not fetched yet, each from its position. Paused ones are skipped. */
err_t catalogue_topic_start_reading(struct catalogue *c);

/* Note the time of a read. Call this before each.
 *
 * Returns ERR_KAFKA_RETRY when the previous read was so long ago that deletes may be missing: then the topic must be
 * resumed again, which verifies it. */
err_t catalogue_topic_note_reading(struct catalogue *c);

/* Start reading the partitions that were added to the topic, from their first records. Returns errors as
 * catalogue_topic_resume() does. */
err_t catalogue_topic_add_new_partitions(struct catalogue *c);

/* Fetch one partition again from its position. */
err_t catalogue_topic_retry(struct catalogue *c, int32_t partition);

/* Verify that a partition's position is within the offsets that the broker has now. Returns ERR_DISCONTINUITY with the
 * offsets; ERR_KAFKA_RETRY. */
err_t catalogue_topic_verify_position(struct catalogue *c, int32_t partition);

/* ---- catalogue_discontinuity.c ---- */

/* Handle the newest failure, an ERR_DISCONTINUITY. With an embedded broker, prepare to read on after the gap. Otherwise
 * begin a rebuild, or return ERR_DISCONTINUITY if catalogue.on_discontinuity is `stop`. */
err_t catalogue_handle_discontinuity(struct catalogue *c);

/* ---- catalogue_damage.c ---- */

/* Note a damage, and return ERR_KAFKA_DAMAGED. */
err_t catalogue_note_damage(struct catalogue *c, const struct damage_sighting *sighting);

/* Retry the damaged partitions that are due. */
err_t catalogue_retry_damage(struct catalogue *c);

/* Pause the damaged partitions, before reading starts. */
void catalogue_pause_damaged(struct catalogue *c);

/* ---- catalogue_schemas.c ---- */

/* Let the registry be asked for schemas, for a moment from now on: records are not to be late because of it. */
void catalogue_begin_asking(struct catalogue *c);

/* May a record be taken? Not if its schema is not known, or if an earlier record of its partition waits: then the
 * partition is read again from that record. */
err_t catalogue_find_schema(struct catalogue *c, const struct topic_record *record, bool *may_take);

/* Ask again for the schemas that partitions wait for, and read on where they are told. Returns ERR_DISCONTINUITY if a
 * partition has waited for longer than the topic keeps tombstones. */
err_t catalogue_retry_schemas(struct catalogue *c);

/* Pause the partitions that wait, before reading starts. */
void catalogue_pause_waiting(struct catalogue *c);

/* ---- catalogue_ahead.c: errors as catalogue_gather() and catalogue_apply() ---- */

/* Gather the next batch, and store a batch that waits meanwhile. */
err_t catalogue_take_batch(struct catalogue *c, struct damage_sighting *damage);

/* Apply the gathered batch, or let it wait. */
err_t catalogue_pass_batch_on(struct catalogue *c, const struct damage_sighting *damage);

/* Apply a batch that waits. */
err_t catalogue_apply_waiting(struct catalogue *c);

/* Forget a batch that waits, with its records, because its partitions are read again. */
void catalogue_forget_batch(struct catalogue *c);

/* ---- catalogue_gather.c ---- */

/* Read one batch. It ends when no records are left, after the publish interval, when it is full, or at a damage; the
 * records before a damage are valid.
 *
 * is_bulk  nobody waits for these records: let the batch become large. The store is not used
 *
 * Returns ERR_DISCONTINUITY; ERR_KAFKA_RETRY when topic or brokers are away. */
err_t catalogue_gather(struct catalogue *c, bool is_bulk, struct damage_sighting *damage);

/* ---- catalogue_client.c ---- */

/* Before a poll: let the client's threads stand back if this thread does. */
void catalogue_relegate_client(struct catalogue *c);

/* After a poll: let them return if the next records cannot wait, or for a while if too few came.
 *
 * n_records  that the poll took */
void catalogue_recall_client(struct catalogue *c, size_t n_records);

/* ---- catalogue_apply.c ---- */

/* Store the newest batch and the positions in one transaction, then publish the batch. */
err_t catalogue_apply(struct catalogue *c);

/* Begin catalogue_apply() of a batch: list the positions, in c->scratch. */
err_t catalogue_begin_write(struct catalogue *c, const struct item_batch *batch, struct batch_write *out);

/* Go on with the store's step. It may run in another thread: nobody else uses the store meanwhile.
 *
 * write  a struct batch_write */
err_code_t catalogue_store_write(void *write);

/* End it with the result of the store's step. Waits for room on the disk if it must. */
err_t catalogue_end_write(struct catalogue *c, struct batch_write *write, err_code_t stored);

/* Can the newest batch's changes from `first` on wait? Then generations that do not answer get parts: perhaps all of
 * them, all at once. false: there are none. */
bool catalogue_can_wait(const struct catalogue *c, size_t first);

/* If the store has refused items since the last call, serve what it has, and enter the phase of a full catalogue. All
 * records that were read must be in the store. */
err_t catalogue_enter_full(struct catalogue *c);

/* ---- catalogue_first_fill.c ---- */

/* Begin a first fill if it is worth it: nobody searches yet, and much is to be read. Until it ends, records go to the
 * store alone. */
void catalogue_begin_first_fill(struct catalogue *c);

/* Log how far a first fill is, if one is under way and a line is due. */
void catalogue_say_first_fill(struct catalogue *c);

/* Let queries be answered from now on: end the first fill, if one is under way, by loading the store. All records that
 * were read must be in the store. */
err_t catalogue_serve(struct catalogue *c);

/* The same while the store lacks records that were read: the watermark is that of its positions. */
err_t catalogue_serve_stored(struct catalogue *c);

/* ---- catalogue_load.c ---- */

/* Load the store into the arenas before anyone searches, with the given watermark. Ends a first fill. */
err_t catalogue_load(struct catalogue *c, const struct position *positions, size_t n);

/* Replace the items that are being searched by those that the store has now. Ends a first fill. */
err_t catalogue_replace(struct catalogue *c);

/* Remove the parts of a stored item that no space can use: the space is not configured, or its model has another size
 * now. The engine would read them in its model's size. */
void catalogue_drop_unusable_parts(struct catalogue *c, struct item_change *change);

/* ---- catalogue_commit.c ---- */

/* Commit the positions when it is time. Uses c->scratch. */
err_t catalogue_commit(struct catalogue *c);

/* ---- catalogue_models.c: nothing is done without a control topic ---- */

/* Before the store is loaded, read the control topic to its end, and load the models that it names. Returns
 * ERR_STOPPING when the daemon stops while waiting. */
err_t catalogue_await_models(struct catalogue *c);

/* Between batches, do a little of what the control topic asks for. */
err_t catalogue_step_models(struct catalogue *c);

/* Wait before the next attempt to read the topic, and do what the control topic asks for meanwhile. No batch may be
 * under way. A stop ends the wait, and certificates that change do. */
err_t catalogue_wait_to_reopen(struct catalogue *c, int wait_ms);

/* ---- catalogue_sweep.c ---- */

/* Delete some items that have been expired for catalogue.delete_expired_after_s. Uses c->scratch. */
err_t catalogue_sweep(struct catalogue *c);

/* ---- catalogue_time.c ---- */

/* Publish an epoch if an item has expired or come out of its embargo. */
err_t catalogue_pass_time(struct catalogue *c);

/* Return the time until catalogue_pass_time() has to do so next, at most `most_ms`. */
int catalogue_ms_until_change(const struct catalogue *c, int most_ms);

/* Wait, and pass time meanwhile. A stop ends the wait. */
err_t catalogue_wait(struct catalogue *c, int wait_ms);

/* ---- catalogue_report_update.c ---- */

/* Update the report, a few times a second at most. */
err_t catalogue_report_update(struct catalogue *c);

/* Note that the topic is not being read: from now on nobody knows whether it has more records. At the start, the report
 * shows the positions of the store. */
err_t catalogue_report_away(struct catalogue *c);

/* ---- catalogue_state.c ---- */

/* Has somebody asked the thread to stop? */
bool catalogue_is_stopping(const struct catalogue *c);

/* Enter a phase, and set the reason that /status shows. Logs a change of the phase.
 *
 * problem  the reason; NULL: none
 */
void catalogue_set_phase(struct catalogue *c, enum catalogue_phase phase, const char *problem);

/* Return the number of items in the catalogue that records are applied to: during a rebuild the new one, otherwise the
 * served one. */
uint64_t catalogue_n_target_items(const struct catalogue *c);

/* List the applied positions for the watermark, in c->scratch. Partitions that wait for room are omitted. */
err_t catalogue_list_watermark(struct catalogue *c, struct position **out, size_t *n);

#endif
