/* SPDX-License-Identifier: Apache-2.0 */
/* What is noted of a traced query on its way through the daemon. Its spans are made from it in the end.
 *
 * Thread: one at a time has it: that which has the query, then that which delivers the reply, then the exporter.
 */
#ifndef DAEMON_TRACING_QUERY_TRACE_H
#define DAEMON_TRACING_QUERY_TRACE_H

#include "base/item.h"
#include "base/method.h"
#include "daemon/tracing/traceparent.h"

enum { QUERY_TRACE_MESSAGE_MAX = 255 };

/* Times are those of clock_now_ns(); 0: that did not happen. */
struct query_trace {
  struct query_trace *next; /* in the list that has it (trace_queue.h) */
  struct traceparent parent;
  int64_t unix_ahead_ns; /* wall clock minus clock_now_ns() */
  int32_t partition;     /* of the query's record */
  int64_t offset;
  int64_t received_ns;
  int64_t waited_ns;    /* when it stopped waiting for other records */
  int64_t queued_ns;    /* when it joined the queue of searches */
  int64_t searched_ns;  /* when its search began */
  uint32_t searched_us; /* as in the answer; 0: unknown, because the answer is an error */
  int64_t sent_ns;      /* when its reply went to the producer */
  int64_t ended_ns;
  bool is_delivered;
  char reply_topic[TOPIC_NAME_MAX + 1]; /* where the reply was sent last */
  char space[SPACE_NAME_MAX + 1];
  uint32_t k;
  char method[METHOD_TEXT_MAX]; /* "": the next four are unknown, too */
  uint32_t generation;
  uint64_t epoch; /* 0: not one epoch */
  size_t n_hits;
  bool is_exact;
  const char *error; /* a literal, such as "BAD_QUERY"; NULL: there is none */
  char error_message[QUERY_TRACE_MESSAGE_MAX + 1];
};

/* These do nothing if t is NULL: most queries are not traced. */

/* Note what the answer says. */
void query_trace_note_answer(struct query_trace *t, const struct query *query, const struct answer *answer);

/* Note an error. `code` is a literal. */
void query_trace_note_error(struct query_trace *t, const char *code, const char *message);

/* Note that the reply, or what replaces it, goes to a topic. */
void query_trace_note_sent(struct query_trace *t, const char *topic);

#endif
