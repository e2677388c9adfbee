/* SPDX-License-Identifier: Apache-2.0 */
/* Where the catalogue thread stands in each partition of the catalogue topic, and whether the topic is still the one
 * that the store came from.
 *
 * Kafka does not tell a client that a topic was deleted and made anew. So the store keeps a digest of the last record
 * that it applied from each partition, and its timestamp: a topic that is written again from an export may well have
 * the same record in the same place, but of another time. Whenever the log is taken up, after a start or an absence,
 * that record is read again and compared before anything behind it is used. Where compaction has removed it, nothing
 * can be compared, and the log is taken for the same one; a log that is not compacted has no such holes.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_TOPIC_POSITION_H
#define DAEMON_CATALOGUE_TOPIC_POSITION_H

#include "ingest/catalogue_reader.h"
#include "store/store.h"

struct topic_position {
  struct store_position position;
  int64_t end_at_start; /* the log's end when reading began: beyond it, this partition has caught up */
  bool must_verify;     /* the record at position.last_offset comes again first, and has to be the same */
  bool has_read_end; /* of the log: where must_verify still holds, that record and all behind it are compacted away */
  bool is_at_end;    /* read up to the end of the committed records */
  bool is_waiting_for_room;      /* a record from here on found no room: the position stays before it (catalogue.max_items) */
  bool is_assigned;      /* its records are being asked for */
  bool is_paused;      /* not read for now: the broker's log is damaged where it stands */
  bool is_changed;   /* since it was last stored */
  bool has_new_first; /* `first` is to be stored, before anything that comes from the partition */
  struct store_position first; /* at the first record that was read */
};

struct topic_positions {
  struct topic_position *items; /* [n], index is the partition */
  size_t n;
  size_t capacity;
  bool has_holes; /* compaction may remove any record but the newest of a key */
};

void topic_positions_fini(struct topic_positions *l);

/* Forget everything. */
void topic_positions_clear(struct topic_positions *l);

/* Add the next partition, as the log and the store say; `from` is where reading has to begin.
 *
 * stored  NULL: the store knows nothing of it, reading begins at `first`
 *
 * Returns ERR_DISCONTINUITY when the stored position is outside [first, end]; ERR_MEMORY.
 */
err_t topic_positions_add(struct topic_positions *l, const struct store_position *stored, int64_t first, int64_t end,
                        int64_t *from);

/* Is the record at last_offset the one that was applied? */
bool topic_position_matches(const struct store_position *last, const struct catalogue_record *record);

/* A record came: `*is_new` says whether it has to be applied.
 * Returns ERR_DISCONTINUITY when it shows that the topic is another one. */
err_t topic_positions_advance(struct topic_positions *l, const struct catalogue_record *record, bool *is_new);

/* The position before the record that was taken last, to be verified by that record itself: reading goes on with it. */
struct store_position topic_positions_before(const struct topic_positions *l, const struct catalogue_record *record);

/* The first records that were read since the last call, as such positions: to positions [n of the list]; returns how
 * many. Where all that follows is held back, the store would know nothing that it can compare. */
size_t topic_positions_list_first(const struct topic_positions *l, struct store_position *positions);
void topic_positions_mark_first_stored(struct topic_positions *l);

/* Everything below next was read, markers included. */
void topic_positions_note_end(struct topic_positions *l, int32_t partition, int64_t next);

/* Whether each partition that is read has come to where its log ended when it was taken up. */
bool topic_positions_have_caught_up(const struct topic_positions *l);

bool topic_positions_any_changed(const struct topic_positions *l);

/* The positions that changed and are not held: to positions [n of the list]; returns how many, and marks them
 * unchanged. */
size_t topic_positions_list_changed(struct topic_positions *l, struct store_position *positions);

/* Mark all that are read as changed: to be stored again, with the time. */
void topic_positions_touch(struct topic_positions *l);

#endif
