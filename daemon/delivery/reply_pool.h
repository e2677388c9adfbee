/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of records for replies that no broker has yet. A record keeps what an error in place of the reply would need:
 * the query's key, id, space and format. The error itself is encoded only if the reply is refused.
 *
 * A freed record keeps its buffer for the next reply, so in the steady state a reply allocates nothing.
 *
 * Thread: any; the pool locks. A record belongs to one thread at a time.
 */
#ifndef DAEMON_DELIVERY_REPLY_POOL_H
#define DAEMON_DELIVERY_REPLY_POOL_H

#include "daemon/delivery/reply_topics.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/wire/wire.h"

struct query_trace;
struct reply_pool;

/* Which topic a reply is sent to. */
enum reply_route {
  REPLY_TO_ANSWER_TOPIC, /* query.answer_topic */
  REPLY_TO_OWN_TOPIC,    /* the reply_topic that the query names */
};

/* What is being sent. Each stage is smaller than the one before. */
enum reply_stage { REPLY_STAGE_ANSWER, REPLY_STAGE_ERROR, REPLY_STAGE_BARE_ERROR };

struct reply_record {
  struct reply_topics_item item; /* first: outlets know the record by it */
  struct reply_record *next_free;
  enum reply_route route;
  enum reply_stage stage;
  enum wire_format format;
  bool has_key;
  uint32_t ticket;
  int32_t partition; /* of the query's record */
  int64_t offset;
  int64_t asked_ns;           /* as in struct delivery_reply */
  struct query_trace *traced; /* likewise */
  size_t n_value_bytes;       /* of the answer */
  struct trace_headers trace; /* these five point into `bytes` */
  struct span key;
  struct span id;
  struct span space;
  struct span head; /* as in struct delivery_reply */
  uint8_t *bytes;
  size_t capacity;
};

/* max_records  records in use at a time */
err_t reply_pool_open(size_t max_records, struct reply_pool **out);

/* Close the pool and free all records, in use or not. */
void reply_pool_close(struct reply_pool **p);

/* Take a free record, with every field zero but its buffer. Returns NULL if all are in use. */
struct reply_record *reply_pool_take(struct reply_pool *p);

/* Give a record back. */
void reply_pool_put(struct reply_pool *p, struct reply_record *record);

/* What a record copies. */
struct reply_texts {
  struct span key;
  struct span id;
  struct span space;
  struct span head;
  const struct trace_headers *trace;
};

/* Copy the texts of a reply into the record. Returns ERR_MEMORY. Allocates: if the buffer is too small. */
err_t reply_record_copy(struct reply_record *record, const struct reply_texts *texts);

/* Records in use. */
size_t reply_pool_n_used(const struct reply_pool *p);

#endif
