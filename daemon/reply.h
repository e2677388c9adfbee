/* Replies: encode an answer, or an error, in the format of its query and hand it to the delivery. */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include "daemon/counters.h"
#include "daemon/delivery.h"
#include "daemon/query_job.h"

struct reply_context {
  struct delivery *delivery;
  struct counters *counters;
  const char *answer_topic;
};

/* Send the answer to a query. id and error of the answer are set here; scratch is reset. Thread: any. */
void reply_answer(const struct reply_context *with, const struct pending_query *query, struct answer *answer,
                  struct region *scratch);

/* Send an error instead. */
void reply_error(const struct reply_context *with, const struct pending_query *query, enum answer_error error,
                 const char *message, struct region *scratch);

/* The error of an answer for a REJECT code. */
enum answer_error reply_error_of(err_code_t err);

#endif
