/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of answers on their way to clients, each with the mark that its query is answered. They are sent in one
 * transaction with the group's positions.
 *
 * Thread: the one that owns it.
 */
#ifndef DAEMON_MERGE_MERGE_BATCH_H
#define DAEMON_MERGE_MERGE_BATCH_H

#include "base/age_watch.h"
#include "base/region.h"
#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/merge/merge_counters.h"
#include "daemon/merge/open_joins.h"
#include "daemon/tracing/tracing.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/readers/transaction.h"
#include "ingest/wire/wire.h"
#include "kernels/kernels.h"

enum { MERGE_BATCH_MAX = 256, MERGE_BATCH_BYTES = 8 << 20 };

/* What is sent in the place of an answer that no broker takes. Each is smaller than the one before. */
enum merge_stage { MERGE_STAGE_ANSWER, MERGE_STAGE_ERROR, MERGE_STAGE_NOTHING };

/* One answer. Spans live in the batch's region. */
struct merge_reply {
  struct query_digest digest;
  struct span part_key; /* of the query's parts, and of its mark */
  int32_t partition;    /* where they are */
  int64_t first_offset; /* of its oldest part */
  const char *topic;
  bool is_own_topic; /* the query named it */
  bool has_key;
  struct span key; /* of the query's record */
  struct span id;
  struct span space;
  struct trace_headers trace;
  struct query_trace *traced; /* notes for its spans; NULL: it is not traced, or its spans are on their way */
  enum wire_format format;
  struct span value;
  int64_t asked_unix_ms;
  enum answer_error error;
  bool is_incomplete; /* shards are missing */
  enum merge_stage stage;
  unsigned n_unsure; /* failures that may or may not be permanent */
};

struct merge_batch_context {
  const struct config *config;
  struct counters *counters;
  struct merge_counters *merge_counters;
  struct transaction *transaction;
  struct tracing *tracing; /* NULL: there are no spans */
};

struct merge_batch {
  struct merge_batch_context with;
  const struct kernels *kernels;
  struct region region;
  struct span mark; /* the value of every mark */
  struct region mark_region;
  struct merge_reply *replies; /* [MERGE_BATCH_MAX] */
  size_t n;
  struct sender_header *headers;        /* [MERGE_BATCH_MAX][REPLY_HEADERS] */
  struct transaction_message *messages; /* [2 * MERGE_BATCH_MAX] the answers, then their marks */
  struct transaction_message *group;    /* [2 * MERGE_BATCH_MAX] those that are sent together */
  size_t at_once;        /* replies of a group: fewer after a failure that does not say which reply is the cause */
  bool is_silent;        /* no broker has said, after the last failure, whether a topic that a query named is there */
  size_t n_sent;         /* replies that are */
  struct age_watch ages; /* of the queries, when they are answered */
};

err_t merge_batch_init(const struct merge_batch_context *context, struct merge_batch *out);
void merge_batch_fini(struct merge_batch *b);

bool merge_batch_has_room(const struct merge_batch *b);

/* Make the answer of a query that is ready, and add it. */
err_t merge_batch_add(struct merge_batch *b, const struct open_join *join);

/* Send the batch with the positions.
 *
 * Returns ERR_OK: it is sent, and can be cleared; ERR_KAFKA_RETRY: it is not: answers that no broker takes were
 * replaced by something smaller, so that another try may succeed; ERR_KAFKA; ERR_MEMORY. */
err_t merge_batch_send(struct merge_batch *b, struct partial_reader *r, const struct position *positions, size_t n);

void merge_batch_clear(struct merge_batch *b);

#endif
