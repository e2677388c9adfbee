/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: encode an answer or an error in the format of its query, and hand it to the delivery. */
#ifndef DAEMON_QUERIES_REPLY_H
#define DAEMON_QUERIES_REPLY_H

#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/delivery/delivery.h"
#include "daemon/queries/query_queue.h"
#include "daemon/queries/shard_part.h"

struct reply_context {
  struct delivery *delivery;
  struct counters *counters;
  const struct config *config;
  bool never_blocks; /* as in struct delivery_reply */
};

/* Verify that a query may name this reply_topic; empty stands for the configured answer topic.
 *
 * Returns ERR_QUERY with the reason and the setting that would allow the topic.
 */
err_t reply_verify_topic(const struct config *config, struct span topic);

/* Send the answer to a query: to the topic that the query names if that is allowed, else to the answer topic. That to a
 * trial goes to whoever tries it.
 *
 * answer   its id and error are set here
 * scratch  is reset
 *
 * Thread: any.
 */
void reply_answer(const struct reply_context *with, const struct pending_query *query, struct answer *answer,
                  struct region *scratch);

/* Send an error in place of an answer. */
void reply_error(const struct reply_context *with, const struct pending_query *query, enum answer_error error,
                 const char *message, struct region *scratch);

/* Return the answer's error for a code of class REJECT. */
enum answer_error reply_error_of(err_code_t err);

#endif
