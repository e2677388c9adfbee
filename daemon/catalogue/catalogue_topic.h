/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue topic: resume each partition at the store's position, and notice when the topic is not the one that
 * filled the store.
 *
 * Thread: catalogue. Blocks: up to some seconds, for a broker.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_TOPIC_H
#define DAEMON_CATALOGUE_CATALOGUE_TOPIC_H

#include "daemon/config/config.h"
#include "daemon/topic/topic_position.h"

struct catalogue_topic {
  struct kafka_layers layers;
  const char *name;
  const struct config *config; /* which partitions are ours */
  struct store *store;
  struct topic_reader *reader; /* owned */
  uint64_t committed_digest;   /* of the positions that this reader has begun to commit (catalogue_commit.c); 0: none */
  struct topic_positions positions;
  bool must_reopen;               /* catalogue_topic_leave() was called */
  bool has_resumed;               /* since the daemon's start */
  int64_t last_read_ns;           /* once it has resumed: time of the last read (clock_boot_ns) */
  int64_t tombstone_retention_ns; /* how long the topic keeps tombstones; 0: for ever, or unknown */
};

err_t catalogue_topic_init(const struct kafka_layers *layers, const struct config *config, struct store *store,
                           struct catalogue_topic *out);
void catalogue_topic_fini(struct catalogue_topic *t);

/* Use this consumer no more: it may have cached metadata of a former topic or cluster. catalogue_topic_renew() opens
 * another one. */
void catalogue_topic_leave(struct catalogue_topic *t);

/* Must another consumer be opened, because this one was left or certificates have changed? */
bool catalogue_topic_is_outdated(const struct catalogue_topic *t);

/* Open another consumer; let it take over, and close the former one. All records must be released then.
 *
 * Returns ERR_KAFKA_RETRY when it cannot be opened now: topic_reader_open_again(). */
err_t catalogue_topic_open_next(const struct catalogue_topic *t, struct topic_reader **out);
void catalogue_topic_take_over(struct catalogue_topic *t, struct topic_reader **next);

/* Do both, if the consumer is outdated. On error the former consumer stays. */
err_t catalogue_topic_renew(struct catalogue_topic *t);

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
err_t catalogue_topic_resume(struct catalogue_topic *t);

/* Start fetching all partitions that are not fetched yet, each from its position. Paused ones are skipped. */
err_t catalogue_topic_start_reading(struct catalogue_topic *t);

/* Note the time of a read. Call this before each.
 *
 * Returns ERR_KAFKA_RETRY when the previous read was so long ago that deletes may be missing: then the topic must be
 * resumed again, which verifies it. */
err_t catalogue_topic_note_reading(struct catalogue_topic *t);

/* Start reading the partitions that were added to the topic, from their first records. Returns errors as
 * catalogue_topic_resume() does. */
err_t catalogue_topic_add_new_partitions(struct catalogue_topic *t);

/* Fetch one partition again from its position. */
err_t catalogue_topic_retry(struct catalogue_topic *t, int32_t partition);

/* Verify that a partition's position is within the offsets that the broker has now. Returns ERR_DISCONTINUITY with the
 * offsets; ERR_KAFKA_RETRY. */
err_t catalogue_topic_verify_position(struct catalogue_topic *t, int32_t partition);

#endif
