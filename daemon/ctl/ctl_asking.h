/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands that ask queries need: Kafka clients, ids of their own, and answers that come to them. Thread: one.
 */
#ifndef DAEMON_CTL_CTL_ASKING_H
#define DAEMON_CTL_CTL_ASKING_H

#include <jansson.h>

#include "daemon/ctl/ctl_context.h"
#include "ingest/kafka/sender.h"
#include "ingest/readers/topic_scan.h"

/* Open a producer for the query topic, and a scan of the answers that come from now on.
 *
 * reported, context  as in sender_open()
 *
 * Returns the errors of topics_count_partitions(), topic_scan_open() and sender_open(). The caller closes what is set,
 * also then.
 */
err_t ctl_asking_open(struct ctl_context *ctx, sender_reported reported, void *context, struct topic_scan **answers,
                      struct sender **sender);

/* Return a number that differs from run to run, for ids that are made. */
uint64_t ctl_asking_series(void);

/* Verify that the answer to a query comes to the topic that is read. Returns ERR_QUERY. */
err_t ctl_asking_verify_reply_topic(const json_t *query, const char *answer_topic);

/* Return the answer's error as a new string, such as "BAD_QUERY: k: expects at least 1"; NULL if it has none. The
 * caller frees it with free(). */
char *ctl_asking_error(const json_t *answer);

#endif
