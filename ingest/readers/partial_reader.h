/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of the partials topic, for the role merge. It is a member of a consumer group. Only committed
 * transactions are read.
 *
 * After an assignment everything is read twice. First the records of the last `remember_ms`, and those from the group's
 * positions on, to the ends that the partitions have: for the marks of answered queries. Then again from the group's
 * positions: for the parts. So when a part is taken, all marks are known, and no query is answered again.
 *
 * Thread: the one that opened it.
 */
#ifndef INGEST_PARTIAL_READER_H
#define INGEST_PARTIAL_READER_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/item.h"
#include "base/span.h"
#include "ingest/kafka/kafka_properties.h"

struct partial_reader;

/* A record of the topic. Spans are valid until the next poll. */
struct partial_record {
  struct span key;
  struct span value;
  int32_t partition;
  int64_t offset;
  bool is_for_marks; /* it is read for its mark: a part is read again later */
};

/* How far a partition was read. */
struct partial_reach {
  int32_t partition;
  int64_t next; /* after the last record that was read */
  int64_t end;  /* of the log, with open transactions, as of the newest fetch; 0: nothing was fetched */
};

/* Open the consumer and join the group.
 *
 * is_stopping  true: the daemon stops, and nothing waits for a broker. Outlives the reader
 */
err_t partial_reader_open(const struct kafka_layers *layers, const char *topic, const char *group, int64_t remember_ms,
                          const _Atomic bool *is_stopping, struct partial_reader **out);

/* Leave the group and close the consumer. */
void partial_reader_close(struct partial_reader **r);

/* Serve the group's events, and wait up to timeout_ms for one record.
 *
 * takes_record  false: take no record, but serve the events
 *
 * Returns ERR_OK; ERR_KAFKA when the client cannot continue, or when the positions of an assignment cannot be read.
 * Blocks: up to timeout_ms; after an assignment, until brokers have answered. */
err_t partial_reader_poll(struct partial_reader *r, int timeout_ms, bool takes_record, bool *has_record,
                          struct partial_record *out);

/* Return the number of the assignment. It rises whenever partitions are assigned or revoked: then all that was read
 * before is read again, here or by another daemon. */
uint64_t partial_reader_generation(const struct partial_reader *r);

/* Are all marks known of the partitions that are assigned? */
bool partial_reader_has_marks(const struct partial_reader *r);

/* Has the group made its assignment, perhaps an empty one? */
bool partial_reader_is_assigned(const struct partial_reader *r);

/* Does the group know this consumer? Blocks: until the client's thread answers. */
bool partial_reader_is_member(const struct partial_reader *r);

/* Is the topic missing? */
bool partial_reader_is_topic_away(const struct partial_reader *r);

/* List the position after the last record of each partition, in an array that is valid until the next poll. The caller
 * may lower them, and commits them. */
size_t partial_reader_positions(struct partial_reader *r, struct position **out);

/* List how far the partitions are read, in an array that is valid until the next poll. A partition with an open
 * transaction is read to where that begins: its end stays ahead. Blocks: no. */
size_t partial_reader_reach(struct partial_reader *r, struct partial_reach **out);

/* Commit positions without waiting. An error is logged. */
void partial_reader_commit(struct partial_reader *r, const struct position *positions, size_t n);

/* Private to ingest/: the client, and the topic. */
struct rd_kafka_s *partial_reader_client(const struct partial_reader *r);
const char *partial_reader_topic(const struct partial_reader *r);

#endif
