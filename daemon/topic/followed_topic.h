/* SPDX-License-Identifier: Apache-2.0 */
/* A topic that the daemon follows from where a store stands: the catalogue, models, or what users have seen. Its
 * consumer, and how far each partition has been read.
 *
 * Whoever follows a topic lists its partitions, reads them, and decides what to do after an error. After most errors
 * another consumer takes over, because this one may have cached metadata of a former topic or cluster.
 *
 * Thread: the one that reads the topic. Blocks: followed_topic_add(), and followed_topic_fini() for three seconds at
 * most.
 */
#ifndef DAEMON_TOPIC_FOLLOWED_TOPIC_H
#define DAEMON_TOPIC_FOLLOWED_TOPIC_H

#include "daemon/topic/topic_position.h"
#include "ingest/kafka/renewal_wait.h"
#include "ingest/readers/topic_reader.h"

struct followed_topic {
  struct kafka_layers layers; /* of the consumers; layers.client is their name in the log */
  const char *name;
  struct topic_reader *reader; /* owned */
  bool is_left;                /* followed_topic_leave() was called: another consumer must take over */
  struct topic_positions positions;
  struct renewal_wait renewal;
};

/* Open the first consumer. Does not wait for the broker.
 *
 * layers  with a client's name; what they point to outlives the topic, and so does `name`
 */
err_t followed_topic_init(const struct kafka_layers *layers, const char *name, struct followed_topic *out);
void followed_topic_fini(struct followed_topic *t);

/* ---- Consumers ---- */

/* Use this consumer no more. followed_topic_reopen() opens another one. */
void followed_topic_leave(struct followed_topic *t);

/* Open another consumer, let it take over, and close the former one. No partition is followed then.
 *
 * Returns ERR_KAFKA_RETRY when it cannot be opened now: topic_reader_open_again(). Then the former one stays. */
err_t followed_topic_reopen(struct followed_topic *t);

/* If certificates have changed since the consumer was opened, open the one that is to take over: call
 * followed_topic_take_over() once all records are released. While the new certificates cannot be used, the former
 * consumer goes on.
 *
 * next  NULL: nothing is to be done now
 *
 * Returns the errors of topic_reader_open(). */
err_t followed_topic_renew(struct followed_topic *t, struct topic_reader **next);
void followed_topic_take_over(struct followed_topic *t, struct topic_reader **next);

/* ---- Partitions ---- */

/* Follow no partition any more. */
void followed_topic_clear(struct followed_topic *t);

/* Note how the broker treats old records, before partitions are added. */
void followed_topic_note_policy(struct followed_topic *t, const struct topic_policy *policy);

/* Follow the next partition, which is not fetched yet.
 *
 * stored  the store's position of it; NULL if the store has none
 * from    out: the offset where reading must begin
 *
 * Returns ERR_DISCONTINUITY when the stored position is outside the partition; ERR_KAFKA_RETRY when the broker does not
 * answer in time. */
err_t followed_topic_add(struct followed_topic *t, const struct store_position *stored, int timeout_ms, int64_t *from);

/* Move the position past a record, or past the end of a partition.
 *
 * is_new  out: it is a record, and has not been applied yet
 *
 * Returns ERR_DISCONTINUITY when the record shows that the topic is another one. */
err_t followed_topic_take(struct followed_topic *t, const struct topic_record *record, bool *is_new);

#endif
