/* SPDX-License-Identifier: Apache-2.0 */
/* How far each partition of a topic has been read: of the catalogue, of models, or of what users have seen. It also
 * checks that the topic is still the one that filled the store.
 *
 * Kafka does not tell a client that a topic was deleted and created again. So the store keeps the digest and the
 * timestamp of the last record that it applied from each partition. The timestamp matters: a topic that is written
 * again from an export may have the same record at the same offset, but with a new timestamp. Whenever reading resumes,
 * after a start or an absence, that record is read again and compared before any later record is used. If compaction
 * has removed it, nothing can be compared, and the topic is taken for the same one. A topic that is not compacted has
 * no such holes.
 *
 * Thread: the one that reads the topic.
 */
#ifndef DAEMON_TOPIC_TOPIC_POSITION_H
#define DAEMON_TOPIC_TOPIC_POSITION_H

#include "ingest/readers/topic_reader.h"
#include "store/store.h"

struct topic_position {
  struct store_position position;
  int64_t known_end;           /* where the partition ended at known_end_ns; kept until it is reached; -1: none */
  int64_t known_end_ns;        /* by clock_boot_ns */
  int64_t asked_end;           /* where the brokers said that it ends, for the sweep; INT64_MAX: they were not asked */
  int64_t end_at_start;        /* end offset when reading began: the partition has caught up when it gets there */
  bool must_verify;            /* the record at position.last_offset is read first, and must be the same */
  bool has_read_end;           /* read to the end; if must_verify still holds, compaction has removed that record */
  bool is_at_end;              /* read to the end of the committed records */
  bool is_waiting_for_room;    /* a new item exceeded catalogue.max_items: the stored position stays before it */
  bool is_assigned;            /* the consumer fetches it */
  bool is_foreign;             /* another shard's: it is never read */
  bool is_paused;              /* not fetched for now: the next record cannot be read yet */
  bool is_changed;             /* since it was last stored */
  bool has_new_first;          /* `first` must be stored before any later position of the partition */
  struct store_position first; /* the position at the first record that was read */
};

struct topic_positions {
  struct topic_position *items; /* [n], index is the partition */
  size_t n;
  size_t capacity;
  bool has_holes;          /* compaction may remove any record but the newest of a key */
  int64_t longest_read_ns; /* the longest time that it took to reach an end that was known */
};

void topic_positions_fini(struct topic_positions *t);

/* Remove all partitions. */
void topic_positions_clear(struct topic_positions *t);

/* Add the next partition.
 *
 * stored  the store's position of it; NULL if the store has none: then reading begins at `first`
 * first   first offset of the partition
 * end     end offset of the partition
 * from    out: the offset where reading must begin
 *
 * Returns ERR_DISCONTINUITY when the stored position is outside [first, end]; ERR_MEMORY.
 */
err_t topic_positions_add(struct topic_positions *t, const struct store_position *stored, int64_t first, int64_t end,
                          int64_t *from);

/* Add the next partition as one that another shard reads. */
err_t topic_positions_add_foreign(struct topic_positions *t);

/* Is this record, at last->last_offset, the one that was applied? */
bool topic_position_matches(const struct store_position *last, const struct topic_record *record);

/* Is this a record that topic_positions_advance() will call new? Not the end of a partition. */
bool topic_positions_is_new(const struct topic_positions *t, const struct topic_record *record);

/* Move a partition's position past a record. `is_new` tells whether the record must be applied.
 * Returns ERR_DISCONTINUITY when the record shows that the topic is another one. */
err_t topic_positions_advance(struct topic_positions *t, const struct topic_record *record, bool *is_new);

/* Return the position just before a record, without complete_unix_ms. Reading that resumes there reads this record
 * first, and verifies it. */
struct store_position topic_position_before(const struct topic_record *record);

/* List the positions at first records that were read and are not stored yet, and return their number. They are stored
 * even if all later positions are held back: otherwise the store would have no record to compare.
 *
 * positions  [t->n]
 */
size_t topic_positions_list_first(const struct topic_positions *t, struct store_position *positions);
void topic_positions_mark_first_stored(struct topic_positions *t);

/* Note that everything below `next`, the partition's end now, was read, transaction markers included. */
void topic_positions_note_end(struct topic_positions *t, int32_t partition, int64_t next);

/* Note the end that the partition's log has now; -1: not known. Call this now and then: a partition that is always
 * being written to is hardly ever read to its end, but to ends that it had before. */
void topic_positions_note_log_end(struct topic_positions *t, int32_t partition, int64_t log_end);

/* Has each partition, except paused ones, been read to the end that it had when reading began? */
bool topic_positions_have_caught_up(const struct topic_positions *t);

/* Does a partition wait for room? */
bool topic_positions_any_waits_for_room(const struct topic_positions *t);

bool topic_positions_any_changed(const struct topic_positions *t);

/* List the changed positions and return their number. Marks all unchanged.
 *
 * positions  [t->n]
 */
size_t topic_positions_list_changed(struct topic_positions *t, struct store_position *positions);

/* Mark the positions of all partitions that are not paused as changed: they are stored again. Those at the end get the
 * current time as complete_unix_ms. Call this only while the topic is read: its broker says when there is more. */
void topic_positions_touch(struct topic_positions *t);

#endif
