/* Where the catalogue thread stands in each partition of the catalogue topic, and whether the topic is still the one
 * that the store came from.
 *
 * Kafka does not tell a client that a topic was deleted and made anew. So the store keeps a digest of the last record
 * that it applied from each partition; after a restart that record is read again and compared before anything behind it
 * is used.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_LOG_POSITION_H
#define DAEMON_LOG_POSITION_H

#include "ingest/catalogue_reader.h"
#include "store/store.h"

struct log_position {
  struct store_position position;
  int64_t end_at_start; /* the log's end when reading began: beyond it, this partition has caught up */
  bool must_verify;     /* the record at position.last_offset comes again first, and has to be the same */
  bool has_read_end; /* of the log: where must_verify still holds, that record and all behind it are compacted away */
  bool is_changed;   /* since it was last stored */
};

struct log_positions {
  struct log_position *items; /* [n], index is the partition */
  size_t n;
  size_t capacity;
};

void log_positions_fini(struct log_positions *l);

/* Forget everything. */
void log_positions_clear(struct log_positions *l);

/* Add the next partition, as the log and the store say; `from` is where reading has to begin.
 *
 * stored  NULL: the store knows nothing of it, reading begins at `first`
 *
 * Returns ERR_DISCONTINUITY when the stored position is outside [first, end]; ERR_MEMORY.
 */
err_t log_positions_add(struct log_positions *l, const struct store_position *stored, int64_t first, int64_t end,
                        int64_t *from);

/* A record came: `*is_new` says whether it has to be applied.
 * Returns ERR_DISCONTINUITY when it shows that the topic is another one. */
err_t log_positions_take(struct log_positions *l, const struct catalogue_record *record, bool *is_new);

/* Everything below next was read, markers included. */
void log_positions_at_end(struct log_positions *l, int32_t partition, int64_t next);

bool log_positions_has_caught_up(const struct log_positions *l);

bool log_positions_is_changed(const struct log_positions *l);

/* The positions that changed: to positions [n of the list]; returns how many, and marks them unchanged. */
size_t log_positions_changed(struct log_positions *l, struct store_position *positions);

#endif
