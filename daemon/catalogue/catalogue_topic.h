/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue topic as the store knows it: taking up each partition where the store stands, and noticing that the
 * topic is not the one that the store came from.
 *
 * Thread: catalogue. Calls block for a broker up to some seconds.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_TOPIC_H
#define DAEMON_CATALOGUE_CATALOGUE_TOPIC_H

#include "daemon/catalogue/topic_position.h"

struct catalogue_topic {
  struct kafka_layers layers;
  const char *name;
  struct store *store;
  struct catalogue_reader *reader; /* owned */
  struct topic_positions positions;
  bool has_resumed;         /* since the daemon's start */
  int64_t last_read_ns;           /* since then: when the log was read last (clock_boot_ns) */
  int64_t tombstone_retention_ns; /* how long the log keeps tombstones; 0: for ever, or it is not known */
};

err_t catalogue_topic_init(const struct kafka_layers *layers, const char *topic, struct store *store,
                         struct catalogue_topic *out);
void catalogue_topic_fini(struct catalogue_topic *t);

/* Make the consumer anew: what the old one remembers of topic and cluster may be wrong. */
err_t catalogue_topic_reopen(struct catalogue_topic *t);

/* Learn where every partition stands, and tell the store what it comes from. Nothing is read before
 * catalogue_topic_start_reading(). A rebuild that a wrong configuration has begun is given up when the log is the served
 * catalogue's own again.
 *
 * Returns ERR_KAFKA_RETRY while broker or topic are away; ERR_DISCONTINUITY in these cases:
 *   cluster, topic or partitions are not the store's
 *   a position is outside its log
 *   the log was not read for longer than it keeps tombstones
 */
err_t catalogue_topic_resume(struct catalogue_topic *t);

/* Read every partition that is not read yet from where it stands, except those that are left (topic_position.is_paused). */
err_t catalogue_topic_start_reading(struct catalogue_topic *t);

/* The log is about to be read: to be called each time.
 *
 * Returns ERR_KAFKA_RETRY when the last time was so long ago that deletes may be missing: it has to be taken up
 * anew. */
err_t catalogue_topic_note_reading(struct catalogue_topic *t);

/* Take up the partitions that were added to the topic, from their first records. Errors as above. */
err_t catalogue_topic_add_new_partitions(struct catalogue_topic *t);

/* Read one partition again from where it stands. */
err_t catalogue_topic_retry(struct catalogue_topic *t, int32_t partition);

/* Verify that the position of a partition is inside its log, as the broker has it now. Returns ERR_DISCONTINUITY with
 * the offsets, ERR_KAFKA_RETRY. */
err_t catalogue_topic_verify_position(struct catalogue_topic *t, int32_t partition);

#endif
