/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: encode an answer, or an error, in the format of its query and hand it to the delivery. */
#ifndef DAEMON_QUERIES_REPLY_H
#define DAEMON_QUERIES_REPLY_H

#include "daemon/config/config.h"
#include "daemon/counters.h"
#include "daemon/delivery/delivery.h"
#include "daemon/queries/query_queue.h"

struct reply_context {
  struct delivery *delivery;
  struct counters *counters;
  const struct config *config;
};

/* Verify that a query may have its reply in this topic; an empty one is the configured topic.
 * Returns ERR_QUERY with the reason, and the setting that would admit it. */
err_t reply_verify_topic(const struct reply_context *with, struct span topic);

/* Send the answer to a query: to the topic that it names, where that is admitted, else to the configured one. id and
 * error of the answer are set here; scratch is reset. Thread: any. */
void reply_answer(const struct reply_context *with, const struct pending_query *query, struct answer *answer,
                  struct region *scratch);

/* Send an error instead. */
void reply_error(const struct reply_context *with, const struct pending_query *query, enum answer_error error,
                 const char *message, struct region *scratch);

/* The error of an answer for a REJECT code. */
enum answer_error reply_error_of(err_code_t err);

#endif
